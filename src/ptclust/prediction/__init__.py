"""Room of the prediction: at which epsilon clusters would become visible, from public numbers and made-up weights."""

from ptclust.prediction.predict import predict
from ptclust.prediction.result import Curve, Point, Prediction

__all__ = ["Curve", "Point", "Prediction", "predict"]
