#include "acutest.h"

#include <stdlib.h>

#include "http/identity.h"

static void test_roles_have_names_both_ways(void)
{
    TEST_CHECK(strcmp(role_name(ROLE_INFRA_APPROVER), "infra-approver") == 0);
    TEST_CHECK(role_of(span_text("infra-approver")) == ROLE_INFRA_APPROVER);
    TEST_CHECK(role_of(span_text("agent")) == ROLE_AGENT);
    TEST_CHECK(strcmp(role_name((enum role)0), "") == 0);
    TEST_CHECK(strcmp(role_name(ROLE_ANY), "") == 0);
    TEST_CHECK(strcmp(role_name(ROLE_OWNER | ROLE_VIEWER), "") == 0);
    for (unsigned i = 0; i < ROLE_COUNT; i++)
        TEST_CHECK(role_of(span_text(role_name((enum role)(1u << i)))) == (enum role)(1u << i));
}

static void test_unknown_roles_are_none(void)
{
    static const char *const names[] = {"", "Owner", "owner ", "own", "root", "owners"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        TEST_CHECK_(role_of(span_text(names[i])) == 0, "%s", names[i]);
    TEST_CHECK(role_of(span_of("owner\0", 6)) == 0);
    TEST_CHECK(role_of(span_of(NULL, 0)) == 0);
}

static void test_projects_are_those_of_the_token(void)
{
    struct identity *who = calloc(1, sizeof(*who));
    struct span alpha = span_text("alpha"), beta = span_text("beta"), none = {NULL, 0};
    TEST_ASSERT(who != NULL);
    TEST_CHECK(!identity_may(who, alpha));
    who->kind = IDENTITY_TOKEN;
    TEST_CHECK(!identity_may(who, alpha));
    who->projects[who->projects_count++] = alpha;
    TEST_CHECK(identity_may(who, alpha) && !identity_may(who, beta));
    TEST_CHECK(!identity_may(who, span_text("alph")) && !identity_may(who, span_text("Alpha")));
    who->all_projects = true;
    TEST_CHECK(identity_may(who, beta) && !identity_may(who, none));
    who->kind = IDENTITY_CLIENT; /* projects are the control surface's */
    TEST_CHECK(!identity_may(who, alpha));
    *who = (struct identity){.kind = IDENTITY_OPERATOR};
    TEST_CHECK(identity_may(who, beta) && !identity_may(who, none));
    free(who);
}

static void test_a_project_called_star_is_not_all_of_them(void)
{
    struct identity *who = calloc(1, sizeof(*who));
    TEST_ASSERT(who != NULL);
    who->kind = IDENTITY_TOKEN;
    who->projects[who->projects_count++] = span_text("*");
    TEST_CHECK(!identity_may(who, span_text("alpha")));
    free(who);
}

TEST_LIST
= {
    {"roles have names, both ways", test_roles_have_names_both_ways},
    {"unknown roles are none", test_unknown_roles_are_none},
    {"projects are those of the token", test_projects_are_those_of_the_token},
    {"a project called * is not all of them", test_a_project_called_star_is_not_all_of_them},
    {NULL, NULL},
};
