/*
 * Worker threads for images. See image_call.h.
 */
#include "backend/storage/image_call.h"

#include "base/limits.h"
#include "io/loop.h"

static void images_copy(const struct images *from, struct images *to)
{
    *to = (struct images){
        .disks = g_strdup(from->disks),
        .aside = g_strdup(from->aside),
        .shared = g_strdup(from->shared),
        .sources = g_strdup(from->sources),
    };
}

void images_clear(struct images *images)
{
    g_free(images->disks);
    g_free(images->aside);
    g_free(images->shared);
    g_free(images->sources);
}

struct image_call *image_call_new(const struct images *images,
                                  bool (*fn)(struct image_call *call, GError **error),
                                  const char *instance, const char *replica)
{
    struct image_call *call = g_new0(struct image_call, 1);
    call->fn = fn;
    images_copy(images, &call->images);
    call->instance = g_strdup(instance);
    call->replica = g_strdup(replica);
    return call;
}

void image_call_free(struct image_call *call)
{
    images_clear(&call->images);
    g_free(call->instance);
    g_free(call->replica);
    g_free(call->os_type);
    g_free(call->path);
    image_plan_unref(call->plan);
    g_clear_pointer(&call->disks, g_ptr_array_unref);
    g_clear_pointer(&call->list, g_ptr_array_unref);
    g_clear_error(&call->error);
    g_free(call);
}

static void call_done(void *data)
{
    struct image_call *call = data;
    if (call->abandoned)
        image_call_free(call);
    else
        promise_complete(&call->done);
}

static void call_in_thread(void *data, void *unused)
{
    struct image_call *call = data;
    call->ok = call->fn(call, &call->error);
    loop_post(call_done, call);
}

static GThreadPool *image_threads(bool shared)
{
    static GThreadPool *pools[2];
    if (pools[shared] == NULL)
        pools[shared] = g_thread_pool_new(call_in_thread, NULL, LIMIT_IMAGE_THREADS, FALSE, NULL);
    return pools[shared];
}

static struct image_call *call_wait(struct image_call *call, GError **error)
{
    if (!promise_wait(&call->done)) {
        call->abandoned = true;
        fettle_set_error(error, KILLED, "the process that waited for a disk has ended");
        return NULL;
    }
    if (call->ok)
        return call;
    g_propagate_error(error, g_steal_pointer(&call->error));
    image_call_free(call);
    return NULL;
}

struct image_call *image_call_run(struct image_call *call, GError **error)
{
    g_thread_pool_push(image_threads(call->shared), call, NULL);
    return call_wait(call, error);
}

static void *look_in_thread(void *data)
{
    call_in_thread(data, NULL);
    return NULL;
}

struct image_call *image_call_look(struct image_call *call, GError **error)
{
    GThread *thread = g_thread_try_new("image look", look_in_thread, call, error);
    if (thread == NULL) {
        image_call_free(call);
        return NULL;
    }
    g_thread_unref(thread);
    return call_wait(call, error);
}

bool image_call_finish(struct image_call *call, GError **error)
{
    struct image_call *done = image_call_run(call, error);
    if (done != NULL)
        image_call_free(done);
    return done != NULL;
}
