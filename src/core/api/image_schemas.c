/* What images and members have, as JSON schemas: glance's client checks types by them before it
 * sends anything. */
#include "core/api/api_private.h"

struct schema_member {
    const char *name, *type; /* of JSON */
    bool nullable, read_only;
};

static const struct schema_member image_members[] = {{"id", "string", false, false},
                                                     {"name", "string", true, false},
                                                     {"status", "string", false, true},
                                                     {"visibility", "string", false, false},
                                                     {"protected", "boolean", false, false},
                                                     {"os_hidden", "boolean", false, false},
                                                     {"checksum", "string", true, true},
                                                     {"os_hash_algo", "string", true, true},
                                                     {"os_hash_value", "string", true, true},
                                                     {"owner", "string", true, true},
                                                     {"size", "integer", true, true},
                                                     {"virtual_size", "integer", true, true},
                                                     {"container_format", "string", true, false},
                                                     {"disk_format", "string", true, false},
                                                     {"created_at", "string", false, true},
                                                     {"updated_at", "string", false, true},
                                                     {"tags", "array", false, false},
                                                     {"min_ram", "integer", false, false},
                                                     {"min_disk", "integer", false, false},
                                                     {"self", "string", false, true},
                                                     {"file", "string", false, true},
                                                     {"schema", "string", false, true},
                                                     {NULL, NULL, false, false}};

static const struct schema_member member_members[] = {{"created_at", "string", false, true},
                                                      {"updated_at", "string", false, true},
                                                      {"image_id", "string", false, true},
                                                      {"member_id", "string", false, true},
                                                      {"status", "string", false, false},
                                                      {"schema", "string", false, true},
                                                      {NULL, NULL, false, false}};

static json_t *properties_of(const struct schema_member *members)
{
    json_t *properties = json_object();
    for (const struct schema_member *member = members; member->name; member++) {
        json_t *one = json_object();
        json_object_set_new(one, "type",
                            member->nullable ? json_make("[s, s]", "null", member->type)
                                             : json_string(member->type));
        if (member->read_only)
            json_object_set_new(one, "readOnly", json_true());
        if (member->type[0] == 'a')
            json_object_set_new(one, "items", json_make("{s:s}", "type", "string"));
        json_object_set_new(properties, member->name, one);
    }
    return properties;
}

static json_t *schema_of(const char *name, const struct schema_member *members)
{
    json_t *schema = json_make("{s:s, s:o}", "name", name, "properties", properties_of(members));
    if (members == image_members) {
        json_object_set_new(schema, "additionalProperties", json_make("{s:s}", "type", "string"));
        json_object_set_new(schema, "links",
                            json_make("[{s:s, s:s}, {s:s, s:s}, {s:s, s:s}]", "href", "{self}",
                                      "rel", "self", "href", "{file}", "rel", "enclosure", "href",
                                      "{schema}", "rel", "describedby"));
    }
    return schema;
}

static json_t *list_schema_of(const char *plural, const char *name,
                              const struct schema_member *members)
{
    return json_make("{s:s, s:{s:{s:s, s:o}, s:{s:s}, s:{s:s}, s:{s:s}}}", "name", plural,
                     "properties", plural, "type", "array", "items", schema_of(name, members),
                     "first", "type", "string", "next", "type", "string", "schema", "type",
                     "string");
}

struct http_answer *api_image_schema(struct api_call *call, GError **error)
{
    return api_answer(call, schema_of("image", image_members));
}

struct http_answer *api_images_schema(struct api_call *call, GError **error)
{
    return api_answer(call, list_schema_of("images", "image", image_members));
}

struct http_answer *api_image_member_schema(struct api_call *call, GError **error)
{
    return api_answer(call, schema_of("member", member_members));
}

struct http_answer *api_image_members_schema(struct api_call *call, GError **error)
{
    return api_answer(call, list_schema_of("members", "member", member_members));
}
