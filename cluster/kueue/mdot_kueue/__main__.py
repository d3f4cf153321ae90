"""python -m mdot_kueue: the controller and the webhook in one process. `--help` lists the options."""

from __future__ import annotations

import argparse
import logging
import os
import socket
import sys
import threading
from typing import Sequence

from kubernetes import client, config
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock

from mdot_kueue.cluster import Cluster
from mdot_kueue.controller import Controller
from mdot_kueue.webhook import Server, Webhook
from mdot_schedulers import Site

log = logging.getLogger("mdot-kueue")


class SiteFile:
    """The configuration, read again after a change. A faulty file is logged once and leaves the last valid one in place."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._changed_s = os.stat(path).st_mtime
        self._site = Site.read(path)

    def __call__(self) -> Site:
        with self._lock:
            try:
                changed_s = os.stat(self._path).st_mtime
                if changed_s != self._changed_s:
                    self._changed_s = changed_s
                    self._site = Site.read(self._path)
            except (OSError, ValueError) as fault:
                log.error("%s; the last configuration stays in use", fault)
            return self._site


def _lead(controller: Controller, namespace: str, lease_s: int) -> None:
    """Runs the controller as the leader. A lost lease ends the process, because its watches must not go on."""
    identity = f"{socket.gethostname()}-{os.getpid()}"

    def lost() -> None:
        log.error("the lease is lost")
        os._exit(1)

    leaderelection.LeaderElection(  # type: ignore[no-untyped-call]
        electionconfig.Config(  # type: ignore[no-untyped-call]
            LeaseLock("mdot-kueue", namespace, identity),  # type: ignore[no-untyped-call]
            lease_duration=lease_s,
            renew_deadline=lease_s * 2 // 3,
            retry_period=max(lease_s // 5, 1),
            onstarted_leading=controller.run,
            onstopped_leading=lost,
        )
    ).run()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m mdot_kueue", description="Predictions for jobs that Kueue queues.")
    parser.add_argument("--site", required=True, metavar="FILE", help="configuration (site.yaml)")
    parser.add_argument("--namespace", default="mdot-system", help="namespace of the lease and the state")
    parser.add_argument("--certificates", metavar="FOLDER", help="serve the webhook with tls.crt and tls.key")
    parser.add_argument("--port", type=int, default=9443, help="port of the webhook")
    parser.add_argument("--without-kueue", action="store_true", help="predict in the webhook, and run no controller")
    parser.add_argument("--lease-seconds", type=int, default=15, help="duration of the leader's lease, at least 3")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("leaderelection").setLevel(logging.WARNING)
    try:
        site = SiteFile(options.site)
        if "KUBERNETES_SERVICE_HOST" in os.environ:
            config.load_incluster_config()  # type: ignore[no-untyped-call]
        else:
            config.load_kube_config()  # type: ignore[no-untyped-call]
    except (OSError, ValueError, config.ConfigException) as fault:
        print(f"mdot-kueue: {fault}", file=sys.stderr)
        return 2
    cluster = Cluster(options.namespace, client.ApiClient())
    server = None
    if options.certificates:
        files = [os.path.join(options.certificates, name) for name in ("tls.crt", "tls.key")]
        webhook = Webhook(site, cluster if options.without_kueue else None)
        server = Server(("", options.port), webhook, files[0], files[1])
        log.info("webhook on port %d", server.server_port)
    if options.without_kueue:
        if server is None:
            print("mdot-kueue: --without-kueue requires --certificates", file=sys.stderr)
            return 2
        server.serve_forever()
    if server is not None:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    _lead(Controller(cluster, site), options.namespace, max(options.lease_seconds, 3))
    return 1


if __name__ == "__main__":
    sys.exit(main())
