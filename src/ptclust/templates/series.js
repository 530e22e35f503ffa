(function () {
  var slider = document.getElementById("slider"), shown = document.getElementById("shown");
  var months = Array.prototype.slice.call(document.querySelectorAll(".month"));
  function show() {
    months.forEach(function (month, i) { month.toggleAttribute("hidden", i !== Number(slider.value)); });
    shown.textContent = months[Number(slider.value)].getAttribute("data-period");
  }
  slider.addEventListener("input", show);
  document.getElementById("control").hidden = false;
  show();
}());
