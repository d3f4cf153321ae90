/* history.h — a history: its keys and what it has learned about them. */
#ifndef HS_HISTORY_H
#define HS_HISTORY_H

#include "base/struct_version.h"
#include "history/history_learning.h"

struct mdot_history {
    mdot_history_options options; /* complete */
    hs_nodes *nodes;
    hs_learning learning;
};

#endif
