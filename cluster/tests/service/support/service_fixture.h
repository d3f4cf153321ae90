/* service_fixture.h — a service without sockets: a state with the shipped predictor, and requests as texts. */
#ifndef TEST_SERVICE_FIXTURE_H
#define TEST_SERVICE_FIXTURE_H

#include "service/job_cache.h"
#include "service/service.h"

typedef struct service_fixture {
    sv_state state;
    char *folder; /* temporary */
    char *store;
    char resnet[SV_SHA256_TEXT], bert[SV_SHA256_TEXT]; /* known jobs; bert at length 128 */
    sv_answer answer;                                  /* of the last request, with a NUL behind it */
    char *text;
} service_fixture;

/* For cmocka's groups. The state has both jobs and a new store. */
int service_set_up(void **state);
int service_tear_down(void **state);

/* Sends a request, and expects the status. Returns the text of the answer, valid until the next one. */
const char *service_ask(service_fixture *f, const char *method, const char *path, const char *body, int status);
const char *service_ask_bytes(service_fixture *f, const char *path, const char *query, const void *body, size_t size,
                              int status);
/* The member "job" of an answer. */
void service_job_of(const char *answer, char out_digest[SV_SHA256_TEXT]);

#endif
