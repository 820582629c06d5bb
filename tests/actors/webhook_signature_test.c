/* Signatures of webhooks: the standard's example, and secrets in the form in which they are shown. */
#include "acutest.h"

#include "actors/webhook_signature.h"

static void test_the_known_signature_AMB_J_43(void)
{
    uint8_t secret[WEBHOOK_SECRET_BYTES_MAX];
    char text[WEBHOOK_SIGNATURE_SIZE];
    uint32_t size = 0;
    TEST_ASSERT(webhook_secret_read(span_text("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), secret, &size));
    const struct webhook_message message = {.id = span_text("msg_p5jXN8AQM9LWM0D4loKWxJek"),
                                            .at_s = 1614265330,
                                            .body = span_text("{\"test\": 2432232314}")};
    webhook_sign(span_of(secret, size), &message, text);
    TEST_CHECK_(strcmp(text, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=") == 0, "%s", text);
}

static void test_each_part_is_signed_W6(void)
{
    char first[WEBHOOK_SIGNATURE_SIZE], other[WEBHOOK_SIGNATURE_SIZE];
    struct span secret = span_text("secret");
    const struct webhook_message message = {.id = span_text("a"), .at_s = 1, .body = span_text("b")};
    struct webhook_message changed = message;
    webhook_sign(secret, &message, first);
    changed.id = span_text("c");
    webhook_sign(secret, &changed, other);
    TEST_CHECK(strcmp(first, other) != 0);
    changed = message;
    changed.at_s = 2;
    webhook_sign(secret, &changed, other);
    TEST_CHECK(strcmp(first, other) != 0);
    changed = message;
    changed.body = span_text("");
    webhook_sign(secret, &changed, other);
    TEST_CHECK(strcmp(first, other) != 0);
    webhook_sign(span_text("Secret"), &message, other);
    TEST_CHECK(strcmp(first, other) != 0);
    webhook_sign(secret, &message, other);
    TEST_CHECK(strcmp(first, other) == 0);
}

static void test_secrets_as_they_are_shown(void)
{
    uint8_t bytes[WEBHOOK_SECRET_BYTES_MAX], again[WEBHOOK_SECRET_BYTES_MAX];
    char text[WEBHOOK_SECRET_TEXT_MAX];
    for (uint32_t size = 0; size <= WEBHOOK_SECRET_BYTES_MAX; size++) {
        uint32_t found = 0;
        memset(bytes, (int)(size + 1), sizeof(bytes));
        webhook_secret_write(span_of(bytes, size), text);
        bool good = webhook_secret_read(span_text(text), again, &found);
        TEST_CHECK_(good == (size >= 24 && size <= 64), "%u bytes", size);
        TEST_CHECK_(!good || (found == size && memcmp(bytes, again, size) == 0), "%u bytes", size);
    }
    memset(bytes, 0, 32);
    webhook_secret_write(span_of(bytes, 32), text);
    TEST_CHECK(strcmp(text, "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=") == 0);
}

static void test_secrets_that_are_given(void)
{
    static const struct {
        const char *text;
        uint32_t size; /* 0: refused */
    } cases[] = {
        {"", 0},
        {"a", 1},
        {"WHSEC_AAAA", 10},
        {"whsec_", 0},
        {"whsec_AAAA", 0},
        {"whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", 32},
        {"whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", 32},
        {"whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB=", 0}, /* a spare bit */
        {"whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==", 0},
        {"whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA-=", 0},
        {"whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA= ", 0},
        {"whsec_=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", 0},
    };
    uint8_t bytes[WEBHOOK_SECRET_BYTES_MAX];
    char longest[WEBHOOK_SECRET_BYTES_MAX + 2];
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        uint32_t size = 0;
        bool good = webhook_secret_read(span_text(cases[i].text), bytes, &size);
        TEST_CHECK_(good == (cases[i].size > 0) && size == cases[i].size, "'%s'", cases[i].text);
    }
    uint32_t size = 0;
    memset(longest, 'a', sizeof(longest));
    TEST_CHECK(webhook_secret_read(span_of(longest, WEBHOOK_SECRET_BYTES_MAX), bytes, &size) && size == 256);
    TEST_CHECK(!webhook_secret_read(span_of(longest, WEBHOOK_SECRET_BYTES_MAX + 1), bytes, &size));
}

TEST_LIST
= {
    {"the known signature (AMB-J-43)", test_the_known_signature_AMB_J_43},
    {"W6: each part is signed", test_each_part_is_signed_W6},
    {"secrets as they are shown", test_secrets_as_they_are_shown},
    {"secrets that are given", test_secrets_that_are_given},
    {NULL, NULL},
};
