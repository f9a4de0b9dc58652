/* See engine_world.h. */
#include "unit/core/world/engine_world.h"

#include <string.h>

#include "proto/records.h"

const char *const engine_nodes[NODES] = {NODE1, NODE2, NODE3};

struct engine_world it;

/* --- node daemons: a member each --- */

static json_t *run(struct members *members, const struct rpc_request *request, GError **error)
{
    if (!strcmp(request->name, "member_prepare")) {
        g_autofree char *member = NULL;
        g_autofree char *client = NULL;
        record_autoptr(member_prepare_args) args =
            member_prepare_args_parse(request->args, RECORD_LAX, error);
        members->ops->prepare(members, args->anew, &member, &client, error);
        return json_make("{s:s,s:s}", "member", member, "client", client);
    }
    if (!strcmp(request->name, "member_certify")) {
        record_autoptr(member_certificates) args =
            member_certificates_parse(request->args, RECORD_LAX, error);
        return args && members->ops->certify(members, args->member, args->client, args->authority,
                                             error)
                   ? json_object()
                   : NULL;
    }
    if (!strcmp(request->name, "engine_set")) {
        record_autoptr(engine_config_args) args =
            engine_config_args_parse(request->args, RECORD_LAX, error);
        return args && members->ops->config_write(members, args->config, error) ? json_object()
                                                                                : NULL;
    }
    record_autoptr(engine_config) config = members->ops->config_read(members, error);
    if (!strcmp(request->name, "member_start"))
        return members->ops->start(members, config, MEMBER_NEW, error) ? json_object() : NULL;
    g_assert_cmpstr(request->name, ==, "member_remove");
    char *folder = NULL;
    bool ok = members->ops->stop(members, error) && members->ops->aside(members, &folder, error) &&
              members->ops->forget(members, error);
    g_free(folder);
    return ok ? json_object() : NULL;
}

static json_t *status_of(struct fake_members *members, GError **error)
{
    record_autoptr(engine_report) report = engine_report_new();
    report->config = members->base.ops->config_read(&members->base, error);
    report->member = member_status_new();
    members->base.ops->ask(&members->base, report->member, error);
    report->member->state = members->running ? MEMBER_RUNNING
                            : members->data  ? MEMBER_STOPPED
                                             : MEMBER_ABSENT;
    return engine_report_to_json(report);
}

static json_t *answer(const struct rpc_request *request, const char *to_node, void *data,
                      GError **error)
{
    guint i = 0;
    while (strcmp(engine_nodes[i], to_node) != 0)
        i++;
    it.questions++;
    g_string_append_printf(it.asked, "node%u %s\n", i + 1, request->name);
    if (it.fail_at && (it.questions == it.fail_at || (it.and_later && it.questions > it.fail_at))) {
        fettle_set_error(error, UNREACHABLE, "connection refused");
        return NULL;
    }
    return !strcmp(request->name, "engine_status") ? status_of(it.members[i], error)
                                                   : run(&it.members[i]->base, request, error);
}

static json_t *promise(const struct rpc_request *request, const char *to_node, void *data,
                       GError **error)
{
    return json_make("{s:b}", "granted", true);
}

static bool sign(struct authority *self, const char *request, const char *cluster_uuid,
                 const char *address, char **ret_certificate, GError **error)
{
    *ret_certificate = g_strdup_printf("%s %s", request, address ? address : "client");
    return true;
}

static bool has_key(struct authority *self)
{
    return true;
}

static bool sign_text(struct authority *authority, const char *text, char **ret_signature,
                      GError **error)
{
    *ret_signature = g_strdup("signed");
    return true;
}

static const struct authority_ops authority_ops = {
    .sign_etcd = sign, .has_key = has_key, .sign_text = sign_text};

/* --- the cluster --- */

void engine_give(void)
{
    world.wconfd->authority = &it.authority;
    world.wconfd->ensemble = &it.ensemble->base;
    it.ensemble->env = world.wconfd;
}

/* A member that has been there from the founding. */
static void found(guint node)
{
    struct fake_members *members = it.members[node];
    struct engine_config *config = engine_config_new();
    config->kind = ENGINE_KIND_ETCD;
    config->state = ENGINE_DECIDING;
    g_free(config->token);
    config->token = g_strdup(ID_C);
    for (guint i = 0; i < NODES; i++) {
        g_autofree char *text =
            g_strdup_printf("{\"node\":\"%s\",\"name\":\"node%u\",\"peer_url\":\"https://"
                            "10.0.0.%u:2380\",\"client_url\":\"https://10.0.0.%u:2379\"}",
                            engine_nodes[i], i + 1, i + 1, i + 1);
        json_autoptr json = json_parse_limited(text, strlen(text), KIB(4), NULL);
        g_ptr_array_add(config->members, engine_member_parse(json, RECORD_LAX, NULL));
        if (node == 0)
            fake_ensemble_put(it.ensemble, i + 1,
                              ((struct engine_member *)config->members->pdata[i])->peer_url, true,
                              false);
    }
    members->config = config;
    members->running = members->data = members->keys = members->certificates = true;
}

void engine_set_up(guint candidates, bool offline, bool etcd)
{
    static const char *const methods[] = {"engine_set",     "engine_status", "member_prepare",
                                          "member_certify", "member_start",  "member_remove"};
    GPtrArray *objects = initial_changes();
    memset(&it, 0, sizeof it);
    struct change *cluster = objects->pdata[0];
    json_object_set_new(cluster->object, "commit_copies",
                        json_integer(0)); /* nobody follows here */
    for (guint i = 0; i < NODES; i++) {
        json_t *node =
            with(object_node(engine_nodes[i]), "master_candidate", json_boolean(i < candidates));
        if (offline && i == 2)
            node = with(with(node, "offline", json_true()), "offline_statement", json_string("x"));
        g_ptr_array_add(objects, put("node", engine_nodes[i], 1, node));
        it.members[i] = fake_members_new();
        it.members[i]->says->healthy = true;
    }
    config_world_init(&world, objects);
    fake_engine_base(world.engine)->replicated = etcd;
    it.asked = g_string_new(NULL);
    it.authority.ops = &authority_ops;
    it.ensemble = fake_ensemble_new(world.wconfd, &it.members[0]->config);
    it.cli = fake_process(world.world, NODE1, ROLE_CLI);
    fake_script(world.world, NULL, ROLE_NODED, "promise_epoch", promise, NULL);
    for (guint i = 0; i < G_N_ELEMENTS(methods); i++)
        fake_script(world.world, NULL, ROLE_NODED, methods[i], answer, NULL);
    engine_give();
    for (guint i = 0; etcd && i < NODES; i++)
        found(i);
    config_world_start(&world);
}

void engine_tear_down(void)
{
    config_world_clear(&world);
    fake_ensemble_free(it.ensemble);
    g_string_free(it.asked, TRUE);
    for (guint i = 0; i < NODES; i++)
        fake_members_free(it.members[i]);
}

char *engine_ask_change(const char *to)
{
    return ask_wconf(&world, it.cli, "change_engine", json_make("{s:s}", "engine", to));
}

char *engine_progress_after(guint ms)
{
    fake_advance(world.world, ms);
    g_autofree char *text =
        ask_wconf(&world, it.cli, "engine_progress", json_make("{s:i}", "seen", 0));
    json_autoptr json = json_parse_limited(text, strlen(text), KIB(64), NULL);
    if (!json_object_get(json, "running"))
        return g_strdup(text);
    const char *code = json_string_value(json_object_get(json, "code"));
    if (*code)
        return g_strdup_printf("%s: %s", code, json_string_value(json_object_get(json, "why")));
    return g_strdup(json_is_true(json_object_get(json, "running")) ? "running" : "ended");
}

void engine_assert_clear(void)
{
    for (guint i = 0; i < NODES; i++) {
        g_assert_null(it.members[i]->config);
        g_assert_false(it.members[i]->running);
        g_assert_false(it.members[i]->data);
    }
}

const char *engine_state_of(guint node)
{
    const struct engine_config *config = it.members[node]->config;
    return config ? enum_word(&engine_phase_words, (int)config->state) : "none";
}
