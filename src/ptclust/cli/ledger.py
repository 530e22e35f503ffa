"""``ptclust ledger``: what was spent on each dataset, and what is left."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ptclust.cli import _options as o
from ptclust.cli._terminal import say
from ptclust.errors import UsageError

if TYPE_CHECKING:
    from ptclust.ledger import Account

_HELP = "Keep account of privacy budgets; see docs/ledger.md."
ledger = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help=_HELP)
File = Annotated[Path, typer.Argument(help="The file of the ledger.", show_default=False)]


def _exact(text: str) -> Any:
    return typer.Option(help=text, metavar="NUMBER")


@ledger.command("init")
def init(
    file: File,
    dataset: Annotated[str, typer.Option(help="Name of the dataset.", show_default=False)],
    epsilon: Annotated[str | None, _exact("Its total, exactly as written: 1, 0.1, 1/3.")] = None,
    delta: Annotated[str | None, _exact("With epsilon: an (epsilon, delta) total.")] = None,
    rho: Annotated[str | None, _exact("Instead of epsilon: a total in zCDP.")] = None,
) -> None:
    """Add a dataset with its total, to a new ledger or an existing one. A total never changes."""
    from ptclust.ledger import Ledger
    from ptclust.ledger.ledger import checked_account
    from ptclust.privacy.budget import Budget

    if (epsilon is None) == (rho is None) or (rho is not None and delta is not None):
        raise UsageError("give the total: --epsilon, --epsilon and --delta, or --rho")
    total = Budget.zcdp(rho) if rho is not None else Budget.approximate(epsilon or "", delta or 0)
    checked_account(dataset, total)  # before a ledger is made
    book = Ledger.open(file) if file.exists() else Ledger.create(file)
    book.add_dataset(dataset, total)
    options = f"--ledger {shlex.quote(str(file))} --dataset {shlex.quote(dataset)}"
    say(f"Dataset {dataset!r} of {file} may spend {total}; charge it by: cluster {options}")


@ledger.command("status")
def status(file: File, as_json: o.AsJson = False) -> None:
    """Show total, spent and left of every dataset. Spent is rounded up and left is rounded down."""
    from ptclust.ledger import Ledger

    accounts = Ledger.open(file).status()
    if as_json:
        typer.echo(json.dumps([account.to_dict() for account in accounts], indent=2))
    else:
        typer.echo("\n".join(_lines(account) for account in accounts) or "No dataset yet.")


@ledger.command("history")
def history(
    file: File,
    dataset: Annotated[str | None, typer.Option(help="Charges of this dataset only.")] = None,
    as_json: o.AsJson = False,
) -> None:
    """Show every charge with the id of its statement; LOST where no release was handed over."""
    from ptclust.ledger import Ledger

    charges = Ledger.open(file).history(dataset)
    if as_json:
        typer.echo(json.dumps([charge.to_dict() for charge in charges], indent=2))
        return
    for charge in charges:
        state = "released" if charge.released else "LOST    "
        typer.echo(
            f"{charge.time}  {state}  {charge.statement_id}  {charge.dataset}: "
            + charge.amount.shown(up=True)
            + f"  ({charge.description})" * bool(charge.description)
        )


@ledger.command("verify")
def verify(file: File) -> None:
    """Read the whole ledger and see whether all of it agrees; exit code 3 and the reason if not."""
    from ptclust.ledger import Ledger

    count = Ledger(file.absolute()).verify()
    typer.echo(f"{file}: {count:,} entries, all in order")


def _lines(account: Account) -> str:
    charges = "1 charge" if account.n_charges == 1 else f"{account.n_charges:,} charges"
    return (
        f"{account.dataset}\n"
        f"  total  {account.total.in_full(up=False)}\n"
        f"  spent  {account.spent.in_full(up=True)}  in {charges}\n"
        f"  left   {account.left.in_full(up=False)}"
    )
