/*
 * The collectors of monitoring, as the table has them (collector.def). Used by fettle-mond, by
 * whoever takes settings of them, and by ConfD, which tells these.
 */
#pragma once

#include "proto/records.h"

enum collector_id {
#define COLLECTOR(id, name, category, kind, version, format, interval_ms, doc) COLLECTOR_##id,
#include "proto/monitor/collector.def"
#undef COLLECTOR
    COLLECTOR_COUNT
};

/* As Ganeti numbers them. */
enum collector_kind { COLLECTOR_PERFORMANCE, COLLECTOR_STATUS };

struct collector {
    const char *name, *category;
    enum collector_kind kind;
    const char *version;
    guint format;
    guint interval_ms;
    const char *doc;
};
extern const struct collector collectors[COLLECTOR_COUNT];

/* -1: there is none of that name. */
int collector_find(const char *name);
/* As it is called in paths: "default" for none. */
const char *collector_category(const struct collector *collector);

/* What a cluster wants of one. */
struct collector_setting {
    bool active;
    guint64 interval_us;
};
struct collector_setting collector_setting(const struct cluster *cluster, enum collector_id id);
/* What every collector does by itself. */
struct collector_setting collector_default(enum collector_id id);

/* Puts `wanted` (NAME=yes, NAME=no) and `intervals` (NAME=SECONDS; 0: as it does by itself) into
 * the cluster's record. WRONG_INPUT names the parameter and the word. `ret_changes`: how many were
 * asked for. */
bool collector_settings_change(struct cluster *cluster, const GPtrArray *wanted,
                               const GPtrArray *intervals, guint *ret_changes, GError **error);
