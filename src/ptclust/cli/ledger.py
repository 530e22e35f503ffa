"""``ptclust ledger``: what was spent on each dataset, and what is left."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import ptclust
from ptclust._markup import counted
from ptclust.cli._options import AsJson
from ptclust.cli._outputs import print_result
from ptclust.cli._terminal import say
from ptclust.errors import UsageError

if TYPE_CHECKING:
    from ptclust.ledger import Account

_HELP = "Keep account of privacy budgets; see docs/ledger.md."
ledger = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help=_HELP)
File = Annotated[Path, typer.Argument(help="The file of the ledger.", show_default=False)]


def _exact(text: str) -> Any:
    return typer.Option(help=text, metavar="NUMBER")


@ledger.command()
def init(
    file: File,
    dataset: Annotated[str, typer.Option(help="Name of the dataset.")],
    epsilon: Annotated[
        str | None,
        typer.Option(help="Its total, exactly as written: 1, 0.1, 1/3.", metavar="NUMBER"),
    ] = None,
    delta: Annotated[str | None, _exact("With epsilon: an (epsilon, delta) total.")] = None,
    rho: Annotated[str | None, _exact("Instead of epsilon: a total in zCDP.")] = None,
) -> None:
    """Add a dataset with its total, to a new ledger or an existing one. A total never changes."""
    from ptclust.ledger.ledger import checked_account

    if (epsilon is None) == (rho is None) or (rho is not None and delta is not None):
        raise UsageError("give the total: --epsilon, --epsilon and --delta, or --rho")
    if rho is not None:
        total = ptclust.Budget.zcdp(rho)
    else:
        total = ptclust.Budget.approximate(epsilon or "", delta or 0)
    checked_account(dataset, total)  # before a ledger is made
    book = ptclust.Ledger.open(file) if file.exists() else ptclust.Ledger.create(file)
    book.add_dataset(dataset, total)
    options = f"--ledger {shlex.quote(str(file))} --dataset {shlex.quote(dataset)}"
    say(f"Dataset {dataset!r} of {file} may spend {total}; charge it by: cluster {options}")


@ledger.command()
def status(file: File, as_json: AsJson = False) -> None:
    """Show total, spent and left of every dataset. Spent is rounded up and left is rounded down."""
    accounts = ptclust.Ledger.open(file).status()
    text = "\n".join(map(_in_words, accounts)) or "No dataset yet."
    print_result([account.to_dict() for account in accounts], text, as_json=as_json)


@ledger.command()
def history(
    file: File,
    dataset: Annotated[str | None, typer.Option(help="Charges of this dataset only.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show every charge with the id of its statement; LOST where no release was handed over."""
    charges = ptclust.Ledger.open(file).history(dataset)
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


@ledger.command()
def verify(file: File) -> None:
    """Read the whole ledger and see whether all of it agrees; exit code 3 and the reason if not."""
    count = ptclust.Ledger(file.absolute()).verify()
    typer.echo(f"{file}: {count:,} entries, all in order")


def _in_words(account: Account) -> str:
    return (
        f"{account.dataset}\n"
        f"  total  {account.total.in_full(up=False)}\n"
        f"  spent  {account.spent.in_full(up=True)}  in {counted(account.n_charges, 'charge')}\n"
        f"  left   {account.left.in_full(up=False)}"
    )
