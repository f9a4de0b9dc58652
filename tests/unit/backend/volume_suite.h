/*
 * What every volume driver has to keep (proto/storage/volume_driver.h): one set of tests, run on
 * the real ones and on the fake that core's tests trust.
 */
#pragma once

#include "proto/storage/volume_driver.h"

struct volume_suite {
    struct volume_driver *driver;
    struct cluster *cluster;
    struct backend *first, *second; /* fresh in each test, without markers */
    struct backend *backups;        /* likewise, and of images; may be the second */
    /* A copy is a point in time, whoever has its source open, and that is not removed before it. */
    bool clones;
    void (*set_up)(void);
    void (*tear_down)(void);
    void (*run)(void (*fn)(void *data), void *data); /* in a task, to its end */
    /* Something that is half made, or that has a name of its own. */
    void (*put)(const struct backend *backend, const char *name);
    void (*hang)(const struct backend *backend, bool hang);
    void (*lock)(const struct backend *backend, const char *name, bool locked);
};

/* Adds the tests, under that path. */
void volume_suite_add(const char *path, struct volume_suite *suite);
