/* In place of libcupti: keeps who subscribes, for the test to call back. */
#include "fakes.h"

fake_cupti fake_cupti_state;

int cuptiSubscribe(void **subscriber, void (*callback)(void *, int, uint32_t, const void *),
                   void *context);
int cuptiUnsubscribe(void *subscriber);
int cuptiEnableCallback(uint32_t is_on, void *subscriber, int domain, uint32_t number);

int cuptiSubscribe(void **subscriber, void (*callback)(void *, int, uint32_t, const void *),
                   void *context)
{
    if (fake_cupti_state.is_taken) {
        return 39;
    }
    fake_cupti_state.is_taken = 1;
    fake_cupti_state.callback = callback;
    fake_cupti_state.context = context;
    *subscriber = &fake_cupti_state;
    return 0;
}

int cuptiUnsubscribe(void *subscriber)
{
    (void)subscriber;
    fake_cupti_state = (fake_cupti){.is_taken = 0};
    return 0;
}

int cuptiEnableCallback(uint32_t is_on, void *subscriber, int domain, uint32_t number)
{
    (void)subscriber;
    if (domain != 1 || number >= 1024) {
        return 1;
    }
    fake_cupti_state.is_enabled[number] = (int)is_on;
    return 0;
}
