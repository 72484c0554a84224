"""Mail, Slack, PagerDuty and whatever else apprise knows, by URL; the extra ``trainmon[notify]``."""

from __future__ import annotations

import importlib.util
import logging
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from trainmon.monitor.sinks.base import SinkError
from trainmon.monitor.sinks.event import AlertEvent
from trainmon.monitor.sinks.worker import Say, Worker
from trainmon.tails.clock import Clock

if TYPE_CHECKING:
    from apprise import Apprise

GATHER_S: Final = 2.0  # what a failing node takes with it comes within moments: one message, not fifty
RETRY_S: Final = (10.0, 60.0, 300.0)
_MOST_IN_ONE: Final = 20
# What chat services would obey: mentions, links, markup. The words in an alert are partly those of a log.
_DEFUSED: Final = str.maketrans({"<": "‹", ">": "›", "@": "＠", "[": "(", "]": ")", "`": "'", "*": "∗"})


class Notify:
    """Sends to every URL; raises SinkError where apprise is missing or does not know one. URLs are never shown."""

    def __init__(self, urls: Sequence[str], say: Say, clock: Clock, gather_s: float = GATHER_S) -> None:
        self._services = [(url.partition(":")[0], _service(url)) for url in urls]
        self._say = say
        self._workers = [
            Worker(
                f"notify-{scheme}",
                _Delivery(scheme, service, say).send,
                say,
                clock=clock,
                most_at_once=_MOST_IN_ONE,
                gather_s=gather_s,
            )
            for scheme, service in self._services
        ]
        self._clock = clock

    def send(self, events: Sequence[AlertEvent]) -> None:
        """To every service, each at its own pace."""
        for event in events:
            for worker in self._workers:
                worker.put(event)

    def close(self, patience_s: float) -> None:
        """Sends what waits."""
        until = self._clock.monotonic() + patience_s
        for worker in self._workers:
            if not worker.close(max(0.0, until - self._clock.monotonic())):
                self._say(f"{worker.name}: not all alerts could be sent in time")


class _Delivery:
    """One service: a failure is said once and tried again, some times."""

    def __init__(self, scheme: str, service: Apprise, say: Say) -> None:
        self._scheme, self._service, self._say = scheme, service, say
        self._failures = 0

    def send(self, events: list[AlertEvent]) -> float | None:
        """The seconds after which to try again, None when it went out or was given up."""
        from apprise import NotifyFormat, NotifyType

        if all(event.is_over for event in events):
            kind = NotifyType.SUCCESS
        else:
            kind = NotifyType.FAILURE if max(event.lead.severity for event in events) > 1 else NotifyType.WARNING
        title, body = words(events)
        if self._service.notify(body=body, title=title, notify_type=kind, body_format=NotifyFormat.TEXT):
            self._failures = 0
            return None
        if self._failures == len(RETRY_S):
            self._failures = 0
            self._say(f"notify: {self._scheme} does not take alerts; {len(events)} given up")
            return None
        if self._failures == 0:
            self._say(f"notify: {self._scheme} did not take an alert; it will be tried again")
        self._failures += 1
        return RETRY_S[self._failures - 1]


def words(events: Sequence[AlertEvent]) -> tuple[str, str]:
    """Title and text of one message: the loudest first."""
    ordered = sorted(events, key=lambda event: (event.is_over, -event.rank))
    first = ordered[0]
    more = f" (and {len(ordered) - 1} more)" if len(ordered) > 1 else ""
    title = f"trainmon: {first.headline}{more}"
    body = first.body if not more else "\n\n".join(f"{event.headline}\n{event.body}" for event in ordered)
    return title.translate(_DEFUSED), body.translate(_DEFUSED)


def _service(url: str) -> Apprise:
    if importlib.util.find_spec("apprise") is None:
        raise SinkError("notify: apprise is not installed; pip install 'trainmon[notify]'")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of the modules that its plug-ins import
        return _added(url)


def _added(url: str) -> Apprise:
    from apprise import Apprise, AppriseAsset

    logging.getLogger("apprise").setLevel(logging.CRITICAL + 1)  # its words name URLs, which hold passwords
    service = Apprise(asset=AppriseAsset(async_mode=False, app_id="trainmon", app_desc="trainmon", app_url=""))
    if not service.add(url):
        raise SinkError(f"notify: apprise does not know the URL {url.partition(':')[0][:20]}:...; see docs/alerts.md")
    return service
