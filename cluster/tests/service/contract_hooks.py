"""Hooks of schemathesis: requests name a job that the service knows, so that they reach more than the first check."""
import os

import schemathesis


@schemathesis.hook
def map_body(context, body):
    if isinstance(body, dict) and "job" in body and os.environ.get("MDOTD_JOB"):
        body["job"] = os.environ["MDOTD_JOB"]
    return body
