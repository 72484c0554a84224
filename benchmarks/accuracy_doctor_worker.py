"""Runs one log doctor on many files, in the doctor's own environment; told by `benchmarks.accuracy_doctors`.

    python accuracy_doctor_worker.py NAME < paths > one JSON list of [id, severity, text] a line

Only the standard library and the doctor: this file is run by an interpreter that has no trainmon.
"""

import contextlib
import importlib
import io
import json
import sys

COMMANDS = {
    "trainproof": ("trainproof.cli", ["doctor", "{}", "--json"]),
    "trainspotter": ("trainspotter.cli", ["analyze", "{}", "--output", "json"]),
    "losslint": ("losslint.cli", ["check", "--format", "json", "{}"]),
    "runmedic": ("runmedic.cli", ["diagnose", "{}", "--json"]),
}


def findings(name, path):
    module, words = COMMANDS[name]
    out = io.StringIO()
    arguments = [word.replace("{}", path) for word in words]
    sys.argv = [name, *arguments]
    main = importlib.import_module(module).main
    errors = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors), contextlib.suppress(SystemExit):
        if name == "trainproof":
            main()
        else:
            main(arguments)
    return list(read(name, json.loads(out.getvalue())))


def read(name, document):
    if name == "trainproof":
        for report in document["reports"]:
            for one in report["findings"]:
                yield one["id"], one["level"].lower(), one["message"] + " " + str(one.get("evidence", ""))
    elif name == "trainspotter":
        for one in document["findings"]:
            text = f"{one['message']} step {one.get('step_start')} to step {one.get('step_end')}"
            yield one["detector"], one["severity"], text
    elif name == "losslint":
        for one in document["findings"]:
            yield one["check"], one["severity"], one["message"] + " " + json.dumps(one.get("details", {}))
    else:
        for run in document:
            for one in run["findings"]:
                yield one["check"], one["severity"], f"step {one.get('step')} " + " ".join(one["evidence"])


DOCTOR = sys.argv[1]
for line in sys.stdin:
    try:
        told = findings(DOCTOR, line.strip())
    except Exception as error:  # what a doctor cannot read is an answer too
        told = [["error", "error-of-the-doctor", f"{type(error).__name__}: {error}"]]
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()
