"""The options of commands that ask how private rounds are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from tffc.assurance.audit.policy import Policy
from tffc.assurance.privacy.question import NEIGHBOURS, CohortKind, Cohorts, PrivacyQuestion
from tffc.cli.options import refuse_without_effect, together

NAMES = (
    "rounds",
    "delta",
    "sampling_rate",
    "clients_per_round",
    "clients",
    "neighbours",
    "least_clients",
    "not_released",
    "secret_seeds",
    "participations",
)
"""The parameters that only matter with the option that asks."""


def privacy_options() -> Callable[[Any], Any]:
    """Return the option `--privacy`, and those that say what is asked."""
    return together(
        click.option(
            "--privacy",
            is_flag=True,
            help="Show which differential privacy follows from the program, or what is missing.",
        ),
        click.option(
            "--rounds",
            metavar="N",
            type=click.IntRange(1),
            default=1,
            show_default=True,
            help="With --privacy: for this number of rounds.",
        ),
        click.option(
            "--delta",
            metavar="D",
            type=click.FloatRange(0, 1, min_open=True, max_open=True),
            default=1e-6,
            show_default=True,
            help="With --privacy: at this δ.",
        ),
        click.option(
            "--sampling-rate",
            metavar="Q",
            type=click.FloatRange(0, 1, min_open=True),
            help="With --privacy: each client takes part with this probability.",
        ),
        click.option(
            "--clients-per-round",
            metavar="K",
            type=click.IntRange(1),
            help="With --privacy: a fixed number of the --clients takes part.",
        ),
        click.option(
            "--clients",
            metavar="N",
            type=click.IntRange(1),
            help="With --clients-per-round: the number of all clients.",
        ),
        click.option(
            "--neighbours",
            type=click.Choice(tuple(NEIGHBOURS)),
            default="add-or-remove",
            show_default=True,
            help="With --privacy: what is hidden of one client.",
        ),
        click.option(
            "--least-clients",
            metavar="K",
            type=click.IntRange(1),
            default=1,
            show_default=True,
            help="With --privacy: every round has at least this number of clients.",
        ),
        click.option(
            "--not-released",
            metavar="PATH",
            multiple=True,
            help="With --privacy: this output is seen by nobody but who runs the rounds.",
        ),
        click.option(
            "--secret-seeds",
            is_flag=True,
            help="With --privacy: seeds that follow from a clock are secret, and all different.",
        ),
        click.option(
            "--participations",
            metavar="N",
            type=click.IntRange(1),
            help="With --privacy: each client takes part in at most this number of the rounds.",
        ),
    )


def privacy_question(
    privacy: bool,
    rounds: int,
    delta: float,
    sampling_rate: float | None,
    clients_per_round: int | None,
    clients: int | None,
    neighbours: str,
    least_clients: int,
    not_released: tuple[str, ...],
    secret_seeds: bool,
    participations: int | None,
) -> PrivacyQuestion | None:
    """Return what the options ask, or None without `--privacy`.

    Raises:
      click.UsageError: options have no effect, or contradict one another.
    """
    if not privacy:
        refuse_without_effect("add --privacy", *NAMES)
        return None
    cohorts = Cohorts()
    if sampling_rate is not None:
        if clients_per_round is not None:
            raise click.UsageError("give '--sampling-rate' or '--clients-per-round', not both")
        cohorts = Cohorts(CohortKind.POISSON, rate=sampling_rate)
    if (clients_per_round is None) != (clients is None):
        raise click.UsageError("'--clients-per-round' and '--clients' need each other")
    if clients_per_round is not None and clients is not None:
        if clients_per_round > clients:
            raise click.UsageError("'--clients-per-round' is larger than '--clients'")
        cohorts = Cohorts(CohortKind.FIXED, size=clients_per_round, population=clients)
    if participations is not None and cohorts.kind is not CohortKind.ALL:
        raise click.UsageError(
            "'--participations' has no effect on rounds whose clients are chosen by chance"
        )
    return PrivacyQuestion(
        rounds,
        delta,
        cohorts,
        NEIGHBOURS[neighbours],
        least_clients,
        withheld=not_released,
        has_secret_seeds=secret_seeds,
        participations=participations,
    )


def question_of(policy: Policy | None, question: PrivacyQuestion | None) -> PrivacyQuestion | None:
    """Return what a policy asks about privacy, or else what the options ask.

    Raises:
      click.UsageError: both ask something.
    """
    if policy is None or policy.epsilon is None:
        return question
    if question is not None:
        raise click.UsageError("'--privacy' has no effect: the policy asks for an ε of its own")
    return policy.epsilon
