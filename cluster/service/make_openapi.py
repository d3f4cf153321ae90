#!/usr/bin/env python3
"""Writes openapi.json, the contract of mdotd: the options come from docs/predict.schema.json, which comes from mdot's
table of options.

    cluster/service/make_openapi.py [--check]
"""
import json
import pathlib
import sys

FOLDER = pathlib.Path(__file__).parent
PREDICT = json.loads((FOLDER / "../../docs/predict.schema.json").read_text())
PREDICTION = PREDICT["$defs"]["prediction"]
NAMES = list(PREDICTION["properties"])
OPTIONS = NAMES[NAMES.index("batch"):NAMES.index("network_gbps") + 1]
GPU_NUMBERS = ["compute_capability", "sm_count", "boost_mhz", "memory_gib", "memory_gbps", "l2_mib", "fp32_tflops",
               "tf32_tflops", "fp16_tflops", "nvlink_gbps", "pcie_gbps", "watts", "fp8_tflops"]
TEXT = {"type": "string"}
DIGEST = {"type": "string", "pattern": "^[0-9a-f]{64}$", "description": "digest of a job, from POST /v1/jobs"}


def ref(name):
    return {"$ref": f"#/components/schemas/{name}"}


def whole(least=0, most=None, **more):
    return {"type": "integer", "minimum": least, **({"maximum": most} if most is not None else {}), **more}


def real(least=0, most=None, **more):
    return {"type": "number", "minimum": least, **({"maximum": most} if most is not None else {}), **more}


def closed(properties, required=(), **more):
    return {"type": "object", "additionalProperties": False, "properties": properties,
            **({"required": list(required)} if required else {}), **more}


def array(items, least=1, most=None):
    return {"type": "array", "items": items, "minItems": least, **({"maxItems": most} if most else {})}


def moved(schema):
    """The schema with its references in this document."""
    return json.loads(json.dumps(schema).replace("#/$defs/", "#/components/schemas/"))


def one_or_many(schema):
    shape = {key: value for key, value in schema.items() if key != "description"}
    return {"anyOf": [shape, array(shape)], **({"description": schema["description"]} if "description" in schema else {})}


def option(name):
    return moved(PREDICTION["properties"][name])


def schemas():
    prediction = moved(PREDICTION)
    for name in ("dims", "steps", "total_seconds", "cost", "cost_of_a_million_samples", "explanation", "correction"):
        del prediction["properties"][name]
    answer = moved({key: PREDICT[key] for key in ("type", "required", "additionalProperties", "properties")})
    answer["properties"]["job"] = DIGEST
    answer["properties"]["calibration"] = {"type": "string", "pattern": "^[0-9a-f]{64}$",
                                           "description": "SHA-256 of the calibration's file; absent without one"}
    answer["properties"]["predictions"] = array({"anyOf": [ref("prediction"), ref("refusal")]})
    # the first flops_per_sample is 0 if the first part of many configurations is refused
    gpu = closed({"name": {"type": "string", "minLength": 1, "maxLength": 128}, "like": TEXT,
                  **{name: real(0, 1e9) for name in GPU_NUMBERS}}, ["name"],
                 description="a GPU by its spec values; the missing ones are those of `like`")
    configuration = {"gpu": one_or_many({"anyOf": [TEXT, ref("gpu")], "description": "name in GET /v1/gpus, or spec values"}),
                     **{name: one_or_many(option(name)) for name in OPTIONS}}
    training = {name: real(0, 2**50) for name in (
        "samples", "evaluation_samples", "evaluation_steps", "checkpoint_bytes", "storage_gbps", "checkpoint_minutes",
        "gpu_failure_hours", "interruptions_per_hour", "restart_minutes", "startup_minutes",
        "grid_grams_per_kwh", "deadline_hours", "budget")}
    numbers = {name: {"type": "number"} for name in (
        "samples_of_a_step", "pipeline_share", "step_ms", "lower_ms", "upper_ms", "reserved_bytes", "usable_bytes", "steps",
        "hours", "lower_hours", "upper_hours", "gpu_hours", "cost", "lower_cost", "upper_cost", "kwh", "co2_kg", "step_hours",
        "evaluation_hours", "checkpoint_hours", "failure_hours", "startup_hours", "checkpoint_minutes", "in_time",
        "in_budget")}
    seconds = whole(0, 10**11, description="seconds since 1970")
    step = {"job": {"type": "string", "description": "digest of POST /v1/jobs, or a network that the store knows"},
            "gpu": TEXT, "step_ms": real(1e-4, 1e9), "memory_gib": real(0, 1e5), "measured_at": seconds,
            "name": TEXT, "software": TEXT, "host": TEXT, "note": TEXT,
            "uid": {"type": "string", "pattern": "^[0-9a-f]{16}$", "description": "makes a repetition harmless"},
            **{name: option(name) for name in OPTIONS}}
    outcome = {**{name: TEXT for name in ("cluster", "job_id", "name", "user", "account", "partition", "state", "digest",
                                          "gpu")},
               "submitted_at": whole(1, 10**11), "gpu_count": whole(), "node_count": whole(), "started_at": seconds,
               "ended_at": seconds, "elapsed_s": whole(-1), "limit_s": whole(-1), "exit_code": whole(-1, 65536),
               "outcome": {"enum": OUTCOMES}}
    return {
        "problem": {"type": "object", "description": "RFC 9457", "required": ["title", "status", "detail"],
                    "properties": {"type": TEXT, "title": TEXT, "status": whole(400, 599), "detail": TEXT}},
        "refusal": closed({"error": closed({"code": TEXT, "detail": TEXT}, ["code", "detail"])}, ["error"]),
        "gpu": gpu,
        "configuration": closed(configuration, ["gpu"], description="a value may be an array: all combinations follow, the "
                                "last array fastest"),
        "prediction": prediction,
        "predict_request": closed({"job": DIGEST, "configuration": ref("configuration"),
                                   "configurations": array(ref("configuration"), 1, 20000)}, ["job"],
                                  oneOf=[{"required": ["configuration"]}, {"required": ["configurations"]}]),
        "predict_answer": answer,
        "job_answer": closed({"mdot": TEXT, "job": DIGEST, "network": {"type": "string", "pattern": "^[0-9a-f]{32}$"},
                              "operators": whole(1), "unknown": whole(), "parameters": real(), "frozen_parameters": real(),
                              "file_batch": whole(), "warnings": array(TEXT, 0)},
                             ["mdot", "job", "network", "operators", "parameters", "file_batch", "warnings"]),
        "plan_request": closed({"job": DIGEST, "gpus": array({"anyOf": [TEXT, ref("gpu")]}, 1, 64),
                                "sizes": array(whole(1, 65536), 1, 64), "node_gpus": whole(1, 65536),
                                "global_batch": whole(1, 2**40), "kept": whole(1, 1024),
                                "options": closed({name: one_or_many(option(name)) for name in OPTIONS if name != "gpus"},
                                                  description="an array lists values to try"),
                                "training": closed(training),
                                "prices": {"type": "object", "additionalProperties": real(1e-9, 1e9),
                                           "description": "of a GPU and hour, by name"}}, ["job", "gpus"]),
        "plan_answer": closed({"schema": {"const": "mdot-plan/1"}, "mdot": TEXT, "predictor": TEXT, "compiler": TEXT,
                               **{name: answer["properties"][name] for name in ("calibrated_by", "calibration")},
                               "job": DIGEST, "parameters": real(), "tokens_of_a_sample": real(), "priced": whole(),
                               "too_large": whole(), "indivisible": whole(), "refused": whole(),
                               "cancelled": {"type": "boolean", "description": "the time was over: layouts are missing"},
                               "layouts": array(closed({"gpu": TEXT, **{n: option(n) for n in OPTIONS}, **numbers}), 0)},
                              ["schema", "mdot", "predictor", "job", "layouts", "cancelled"]),
        "observations_request": closed({"steps": array(closed(step, ["job", "gpu", "batch", "step_ms"]), 0, 1000),
                                        "outcomes": array(closed(outcome, ["job_id", "submitted_at"]), 0, 1000)}),
        "observations_answer": closed({"mdot": TEXT, "steps": closed({"added": whole(), "known": whole()}),
                                       "outcomes": closed({"added": whole(), "updated": whole(), "known": whole()})},
                                      ["mdot", "steps", "outcomes"]),
        "durations_request": closed({"jobs": array(closed({
            **{name: TEXT for name in ("user", "group", "name", "gpu_type", "network")}, "gpus": whole(0, 2**20),
            "submitted_at": whole(0, 10**12), "executed_s": whole(0, 10**12)}), 1, 1000),
            "quantiles": array(real(.001, .999), 0, 16)}, ["jobs"]),
        "durations_answer": closed({"mdot": TEXT, "estimates": array(closed({
            "median_s": real(), "early_failure": real(0, 1), "failure_s": real(), "key": TEXT, "weight": real(),
            "quantiles": array(closed({"probability": real(), "seconds": real(), "remaining_seconds": real()}), 0)}))},
            ["mdot", "estimates"]),
        "gpus_answer": closed({"schema": {"const": "mdot-gpus/1"}, "gpus": array(closed({
            "name": TEXT, **{name: real() for name in GPU_NUMBERS}, "source": {"enum": ["site", "mdot"]}}))},
            ["schema", "gpus"]),
    }


OUTCOMES = ["unfinished", "completed", "failed", "cancelled", "timed-out"]
PROBLEMS = {"400": "the body cannot be read", "401": "TCP without the bearer token", "404": "the job is unknown",
            "413": "the request or the job is beyond a limit", "422": "a member, an option or the job is refused",
            "429": "too many requests of this client", "503": "busy, stopping, or the store cannot be used: try again"}


def answers(success, problems=PROBLEMS):
    problem = {"application/problem+json": {"schema": ref("problem")}}
    return {"200": {"description": "the answer", "content": success},
            **{status: {"description": text, "content": problem} for status, text in problems.items()}}


def post(name, summary, body=None, **more):
    body = body or {"application/json": {"schema": ref(name + "_request")}}
    answer = "job" if name == "jobs" else name
    return {"post": {"operationId": name, "summary": summary, "requestBody": {"required": True, "content": body},
                     "responses": answers({"application/json": {"schema": ref(answer + "_answer")}}), **more}}


def get(name, summary, content, problems, **more):
    return {"get": {"operationId": name, "summary": summary,
                    "responses": answers(content, {status: PROBLEMS[status] for status in problems}), **more}}


def document():
    query = [{"name": name, "in": "query", "required": False, "explode": True,
              "schema": {"type": "array", "items": TEXT, "maxItems": 16}, "description": text}
             for name, text in (("dim", "NAME=N or NAME=OTHER binds a symbolic dimension"),
                                ("frozen", "modules whose parameters are frozen; * and ? are wildcards"),
                                ("trained", "modules that train, also inside frozen ones"))]
    binary = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
    plain = {"text/plain": {"schema": TEXT}}
    health = get("readyz", "whether the service accepts requests", plain, [])
    health["get"]["responses"]["503"] = {"description": "it is stopping",
                                         "content": {"application/problem+json": {"schema": ref("problem")}}}
    paths = {
        "/v1/jobs": post("jobs", "keep a job, ONNX or .job, and name it", binary, parameters=query),
        "/v1/predict": post("predict", "predict configurations of a job"),
        "/v1/plan": post("plan", "search layouts on several GPUs"),
        "/v1/observations": post("observations", "keep measured steps and outcomes of jobs"),
        "/v1/durations": post("durations", "estimate durations of jobs from the outcomes"),
        "/v1/gpus": get("gpus", "the GPU table", {"application/json": {"schema": ref("gpus_answer")}}, ["401", "429", "503"]),
        "/metrics": get("metrics", "counters in Prometheus' text format", plain, ["401", "429", "503"]),
        "/healthz": get("healthz", "whether the process lives", plain, [], security=[]),
        "/readyz": health}
    return {"openapi": "3.1.0",
            "info": {"title": "mdotd", "version": "1", "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
                     "description": "Predictions of training steps. A choice may also be one of the words that `mdot "
                                    "predict` accepts for it."},
            "servers": [{"url": "http://127.0.0.1"}], "security": [{}, {"bearer": []}], "paths": paths,
            "components": {"securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}}, "schemas": schemas()}}


def main():
    whole_document = document()
    parts = [whole_document.pop("paths"), whole_document["components"].pop("schemas")]
    lines = [",\n".join(f"  {json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}" for name, value in part.items())
             for part in parts]  # a line for each
    text = json.dumps(whole_document, ensure_ascii=False)[:-2]
    text += f', "schemas": {{\n{lines[1]}\n}}}},\n"paths": {{\n{lines[0]}\n}}}}\n'
    path = FOLDER / "openapi.json"
    if "--check" not in sys.argv[1:]:
        path.write_text(text)
    elif path.read_text() != text:
        sys.exit("openapi.json is not what make_openapi.py writes: run it")


if __name__ == "__main__":
    main()
