"""``trainmon demo``: simulated runs that meet trouble."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trainmon.commands.common import echo, epilog, fail, require_screens
from trainmon.commands.options import json_option, quiet_option
from trainmon.commands.terminal_options import terminal_options
from trainmon.commands.watch import show

if TYPE_CHECKING:
    from trainmon.monitor.simulate.faults import Fault
    from trainmon.monitor.simulate.model import RunSpec


_AWAITED = "the simulated runs are starting; their first lines come within seconds"

# Those of monitor.simulate.faults, which is imported when it is needed.
_FAULTS = """\b
Faults: bad_rank, bad_source, co_spike, data_wait, drift, eval_regression,
  expert_collapse, grad_spike, level_shift, loss_spike, lr_jump,
  memory_creep, nan, nccl_crash, oom_crash, plateau, restart, slow_rank,
  slow_steps, stall, unrecovered_spike, zero_loss
"""


@click.command(
    epilog=_FAULTS
    + "\n"
    + epilog(
        "trainmon demo  five runs, trouble within a minute",
        "trainmon demo --faults slow_rank:1.6@100,nan --runs 3 --ranks 64",
        "trainmon demo --faults none --out logs/  healthy logs, no screen",
        status="0, or that of `watch`; 2 wrong usage",
    )
)
@click.option("--seed", type=int, default=0, show_default=True, help="Same seed, same runs.")
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), help="Write the runs' logs here and end; no screen."
)
@click.option("--keep", is_flag=True, help="Keep the temporary directory with the logs.")
@click.option("--faults", multiple=True, metavar="NAME,...", help="These: NAME, NAME:SIZE, NAME@STEP, RUN/NAME; none.")
@click.option("--runs", type=click.IntRange(1, 200), help="How many runs (5).")
@click.option("--ranks", type=click.IntRange(1, 100_000), help="Ranks of each run.")
@json_option("trainmon.demo/1", where="With --out")
@quiet_option("Do not say what was written.")
@click.option("--moe", is_flag=True, help="Only mixtures of experts.")
@terminal_options
def demo(
    seed: int,
    out: Path | None,
    keep: bool,
    faults: tuple[str, ...],
    runs: int | None,
    ranks: int | None,
    moe: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Watch simulated runs that meet trouble within a minute: real log files, written as they would be."""
    from trainmon.monitor.document import dumps
    from trainmon.monitor.simulate import simulation as simulate
    from trainmon.monitor.simulate.choice import choose_faults, choose_runs, document

    specs = choose_runs(simulate.DEFAULT_RUNS, runs, ranks, moe)
    try:
        script = choose_faults(faults, specs)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if out is not None:
        try:
            simulate.write_finished(out, seed=seed, faults=script, runs=specs)
        except OSError as error:
            fail(f"{out}: {error.strerror or error}; give a directory that can be written")
        if as_json:
            echo(dumps(document(out, specs, script)))
        elif not quiet:
            echo(f"wrote simulated runs below {out}; try: trainmon check {out}")
        return
    if as_json:
        raise click.UsageError("--json goes with --out")
    require_screens("`trainmon demo --out DIR` only writes the logs")
    _demo(seed, keep, script, specs)


def _demo(seed: int, keep: bool, script: Sequence[Fault], specs: Sequence[RunSpec]) -> None:
    import shutil
    import tempfile
    import threading

    from trainmon.monitor.simulate import simulation as simulate
    from trainmon.monitor.thresholds import Thresholds
    from trainmon.tails.clock import SystemClock

    directory = Path(tempfile.mkdtemp(prefix="trainmon-demo-"))
    stop = threading.Event()
    writer = threading.Thread(
        target=simulate.serve,
        args=(directory, seed, SystemClock(), stop, script, specs),
        name="trainmon-demo",
        daemon=True,
    )
    writer.start()
    try:
        show([str(directory)], Thresholds(), awaited=_AWAITED)
    finally:
        stop.set()
        writer.join(timeout=5.0)
        if keep:
            click.echo(f"the demo's logs are in {directory}")
        else:
            shutil.rmtree(directory, ignore_errors=True)
