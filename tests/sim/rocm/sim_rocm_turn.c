/* Whose turn it is. Queues and the copy engine begin what they have to do one at a time, in an order drawn from the
 * seed, so that a program that forgets a barrier fails under some seed.
 *
 * That there is a choice takes patience: nobody begins before the host asks for a result, or has been silent. One that
 * is long at work lets others begin, for it may be waiting for them. */
#include "tests/sim/rocm/sim_rocm.h"

/* In ticks of 10 ns: how long the host must be silent, how long one that is at work is waited for. */
enum { SILENCE = 200000, PATIENCE = 2000000, NANOSECONDS_AGAIN = 1000000, NANOSECONDS_IDLE = 50000000 };

static sim_turn *turns; /* in the order of their coming */
static sim_turn *chosen;
static uint32_t waiters; /* threads of the host in a call that waits */
static bool asked;       /* the host has looked at a result since it last handed something over */
static uint64_t handed_over;

void sim_rocm_turn_join(sim_turn *turn) {
    sim_turn **link = &turns;
    while (*link)
        link = &(*link)->next;
    *link = turn;
}

void sim_rocm_turn_leave(sim_turn *turn) {
    sim_turn **link = &turns;
    while (*link != turn)
        link = &(*link)->next;
    *link = turn->next;
    if (chosen == turn) chosen = NULL;
}

void sim_rocm_handed_over(void) {
    handed_over = sim_rocm_ticks();
    asked = false;
    sim_rocm_changed();
}

void sim_rocm_asked(void) {
    if (!sim_rocm_has_threads()) sim_rocm_turn_step();
    if (asked) return;
    asked = true;
    sim_rocm_changed();
}

void sim_rocm_wait_begin(void) {
    waiters++;
    sim_rocm_changed();
}

void sim_rocm_wait_end(void) {
    waiters--;
}

static bool could_begin(const sim_turn *turn) {
    return !turn->works && turn->is_ready(turn);
}

/* NULL: none could. */
static sim_turn *draw(void) {
    uint32_t count = 0;
    for (const sim_turn *turn = turns; turn; turn = turn->next)
        count += could_begin(turn);
    if (!count) return NULL;
    uint32_t left = sim_rocm_random(count);
    sim_turn *turn = turns;
    while (!could_begin(turn) || left--)
        turn = turn->next;
    return turn;
}

static bool somebody_works(uint64_t now) {
    for (const sim_turn *turn = turns; turn; turn = turn->next)
        if (turn->works && now - turn->since < PATIENCE) return true;
    return false;
}

static bool comes(const sim_turn *turn) {
    const uint64_t now = sim_rocm_ticks();
    if (!waiters && !asked && now - handed_over < SILENCE) return false;
    if (somebody_works(now)) return false;
    if (!chosen || !could_begin(chosen)) {
        chosen = draw();
        if (chosen != turn) sim_rocm_changed();
    }
    return chosen == turn;
}

static void work(sim_turn *turn) {
    chosen = NULL;
    turn->works = true;
    turn->since = sim_rocm_ticks();
    turn->work(turn);
    turn->works = false;
    sim_rocm_changed();
}

void sim_rocm_turn_await(sim_turn *turn) {
    if (!turn->is_ready(turn))
        sim_rocm_wait_change(NANOSECONDS_IDLE);
    else if (!comes(turn))
        sim_rocm_wait_change(NANOSECONDS_AGAIN);
    else
        work(turn);
}

bool sim_rocm_turn_step(void) {
    sim_turn *turn = draw();
    if (turn) work(turn);
    return turn;
}
