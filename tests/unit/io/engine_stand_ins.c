/* The engines of tests; see engine_rigs.h. */
#include "engine_rigs.h"
#include "world.h"

#include "helper/fake_engine.h"
#include "helper/fake_env.h"
#include "model_store.h"
#include "proto/copy.h"

struct rig {
    struct fake_world *world;
    struct env *env;
    struct fake_engine *fake;
    struct model_store *store;
    guint chance; /* what its dice say */
};

/* --- both: a world in memory --- */

static struct rig *rig_new(void)
{
    struct rig *rig = g_new0(struct rig, 1);
    rig->world = fake_world_new();
    rig->env = fake_process(rig->world, NODE_A, ROLE_WCONFD);
    return rig;
}

static void rig_end(struct rig *rig)
{
    fake_world_free(rig->world);
    g_free(rig);
}

static void world_run(struct rig *rig, task_fn fn, void *data)
{
    fake_run(rig->env, fn, data);
}

static void world_turn(struct rig *rig, const bool *done)
{
    for (guint i = 0; i < 1000 && !*done; i++)
        fake_advance(rig->world, 1);
    g_assert_true(*done);
}

/* --- the fake engine --- */

static struct rig *fake_make(const GPtrArray *changes)
{
    struct rig *rig = rig_new();
    rig->fake = fake_engine_new(RIG_HISTORY, changes);
    return rig;
}

static struct rig *fake_make_replicated(const GPtrArray *changes)
{
    struct rig *rig = fake_make(changes);
    fake_engine_replicate(rig->fake);
    return rig;
}

static void fake_free(struct rig *rig)
{
    struct fake_engine *fake = rig->fake;
    rig_end(rig);
    fake_engine_free(fake);
}

static struct engine *fake_open(struct rig *rig)
{
    return fake_engine_base(rig->fake);
}

static void fake_close(struct rig *rig, struct engine *engine)
{
    fake_engine_crash(rig->fake);
    fake_settle(rig->world);
}

static void fake_expire(struct rig *rig)
{
    fake_engine_expire(rig->fake);
}

static bool fake_lose_answer(struct rig *rig, guint turn)
{
    fake_engine_fail_next(rig->fake, ENGINE_UNKNOWN, turn == 1);
    return true;
}

const struct rig_kind rig_fake = {
    .name = "fake",
    .stand_in = true,
    .make = fake_make,
    .free = fake_free,
    .open = fake_open,
    .close = fake_close,
    .run = world_run,
    .wait = world_turn,
    .lose_answer = fake_lose_answer,
    .losses = 2,
};

const struct rig_kind rig_fake_replicated = {
    .name = "fake-replicated",
    .stand_in = true,
    .make = fake_make_replicated,
    .free = fake_free,
    .open = fake_open,
    .close = fake_close,
    .run = world_run,
    .wait = world_turn,
    .expire = fake_expire,
    .lose_answer = fake_lose_answer,
    .losses = 2,
};

/* --- the simulator's model of a store --- */

static void committed(struct model_store *store, const char *id, guint64 epoch, void *data)
{
}

static void moved(struct model_store *store, const struct copy_position *before, void *data)
{
}

static void takes_over(struct model_store *store, const struct copy_batch *last, void *data)
{
}

static guint dice(guint below, void *data)
{
    return ((const struct rig *)data)->chance % below;
}

static guint sync_ms(struct model_store *store, void *data)
{
    return 1;
}

static struct rig *model_make(const GPtrArray *changes)
{
    struct rig *rig = rig_new();
    const struct model_store_events events = {committed, moved, takes_over, dice, sync_ms, rig};
    rig->store = model_store_new(NODE_A, &events);
    model_store_fill(rig->store, RIG_HISTORY, changes);
    return rig;
}

static void model_free(struct rig *rig)
{
    struct model_store *store = rig->store;
    rig_end(rig);
    model_store_free(store);
}

static struct engine *model_open(struct rig *rig)
{
    return model_store_engine(rig->store, rig->env);
}

static void model_close(struct rig *rig, struct engine *engine)
{
    engine->ops->close(engine);
    g_free(engine);
    model_store_fail(rig->store, 0);
}

/* The disk fails, with or without the batch; or the process ends in the middle of it. */
static bool model_lose_answer(struct rig *rig, guint turn)
{
    rig->chance = turn % 2;
    if (turn >= 2)
        model_store_fail(rig->store, 1);
    return turn >= 2;
}

const struct rig_kind rig_model = {
    .name = "model",
    .stand_in = true,
    .make = model_make,
    .free = model_free,
    .open = model_open,
    .close = model_close,
    .run = world_run,
    .wait = world_turn,
    .lose_answer = model_lose_answer,
    .losses = 4,
};
