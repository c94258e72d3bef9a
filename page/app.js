// What the views share: the report, the histories, the state of the page and its address.

import { eventOfNumber, numberOfEvent } from './event_numbers.js';
import { History } from './history.js';
import { readLink, writeLink } from './link.js';

// [name in the state, what names its history, 1 if its second event is the first that is not in it]
const EVENT_FIELDS = [
    ['event', 'history', 0],
    ['span', 'history', 0],
    ['range', 'history', 1],
    ['from', 'fromHistory', 0],
    ['fromRange', 'fromHistory', 1],
];

const WRITE_AFTER = 250; // ms: browsers refuse to change the address more often than some times a second

export class App {
    constructor(report, columns) {
        this.report = report;
        this.columns = columns;
        this.histories = new Map();
        this.listeners = [];
        this.state = { view: 'findings', history: 0, event: 0, colour: 'category', by: 'stack' };
        this.changed = new Set();
    }

    start(fragment) {
        this.state = this.stateOfLink(fragment);
        this.validate();
        for (const name of ['hashchange', 'popstate']) window.addEventListener(name, () => this.follow());
    }

    // To what the address asks for now: another was typed in, or the reader went back or forward.
    follow() {
        if (location.hash === this.written) return;
        this.written = location.hash;
        this.change({ ...this.cleared(), ...this.stateOfLink(location.hash) });
        this.writeSoon();
    }

    stateOfLink(fragment) {
        const link = this.withEvents(readLink(fragment));
        return { ...this.defaults(link.history ?? 0), ...this.viewOfLink(link), ...link };
    }

    // LINK with events in place of their numbers; an end of a range is not in it any more.
    withEvents(link) {
        const events = { ...link };
        for (const [name, of, end] of EVENT_FIELDS) {
            const history = this.report.histories[link[of] ?? link.history ?? 0];
            if (link[name] === undefined || !history) continue;
            const eventOf = (number) => eventOfNumber(this.columns, history.prefix, number, history.events);
            events[name] = Array.isArray(link[name])
                ? [eventOf(link[name][0]), eventOf(link[name][1]) + end]
                : eventOf(link[name]);
        }
        return events;
    }

    // The address of STATE, with the numbers of its events.
    linkOf(state) {
        const numbers = { ...state };
        for (const [name, of, end] of EVENT_FIELDS) {
            const history = this.report.histories[state[of] ?? state.history ?? 0];
            if (state[name] === undefined || state[name] === null || !history) continue;
            const numberOf = (event) => numberOfEvent(this.columns, history.prefix, Math.round(event));
            numbers[name] = Array.isArray(state[name])
                ? [numberOf(state[name][0]), Math.max(0, numberOf(state[name][1] - end))]
                : numberOf(state[name]);
        }
        return writeLink(numbers);
    }

    // A link that names a moment and no view shows that moment.
    viewOfLink({ event, block, span, range }) {
        if (!this.report.histories.length) return {};
        if (span || range || (block !== undefined && event === undefined)) return { view: 'timeline' };
        return event === undefined ? {} : { view: 'state' };
    }

    defaults(history) {
        const known = this.report.histories[history];
        const colour = known && !this.hasCategories(known) ? 'stream' : 'category';
        return {
            view: 'findings',
            history: known ? history : 0,
            event: known?.peak?.event ?? 0,
            colour,
            by: 'stack',
        };
    }

    // Who made requests by hand names no categories: streams tell more then.
    hasCategories({ prefix, categories }) {
        const name = `${prefix}b.category`;
        if (!(categories?.length > 1) || !this.columns.has(name)) return false;
        const column = this.columns.get(name);
        return column.some((category) => category !== column[0]);
    }

    // Recordings have something to do with each other, and so have runs of one workload.
    isComparable(one, other) {
        const { histories } = this.report;
        return histories[one].workload === histories[other].workload;
    }

    hasComparable() {
        const { histories } = this.report;
        const workloads = new Set(histories.map(({ workload }) => workload));
        return workloads.size < histories.length;
    }

    cleared() {
        const none = {};
        for (const name of Object.keys(this.state)) none[name] = null;
        return none;
    }

    // Whatever an address asks for that there is not becomes something that there is.
    validate() {
        const { state, report } = this;
        if (!report.histories[state.history]) state.history = 0;
        const history = report.histories[state.history];
        if (history) {
            const last = history.events - 1;
            state.event = Math.min(state.event ?? 0, last);
            if (state.block >= history.blocks) state.block = null;
            if (state.range && !(state.range[0] < state.range[1])) state.range = null;
            if (state.height && !(state.height[0] < state.height[1])) state.height = null;
            if (state.span && state.span[0] > state.span[1]) state.span = [state.span[1], state.span[0]];
        }
        const other = report.histories[state.fromHistory ?? state.history];
        if (!other) state.from = state.fromHistory = null;
        else if (state.from >= other.events) state.from = other.events - 1;
        if (state.fromRange && !(state.fromRange[0] < state.fromRange[1])) state.fromRange = null;
        if (!report.findings[state.finding]) state.finding = null;
    }

    history(index) {
        const wanted = index ?? this.state.history;
        if (!this.report.histories[wanted]) return null;
        if (!this.histories.has(wanted))
            this.histories.set(wanted, new History(this.report, this.columns, wanted));
        return this.histories.get(wanted);
    }

    onChange(listener) {
        this.listeners.push(listener);
    }

    // Another view is a step that the reader can take back; where in a view one is, is not.
    set(changes) {
        if ('view' in changes && changes.view !== this.state.view) this.step(changes);
        else if (this.change(changes)) this.writeSoon();
    }

    step(changes) {
        if (this.writing) this.write(); // back leads to where the reader was last
        if (this.change(changes)) this.write('pushState');
    }

    // Whether anything is other than before.
    change(changes) {
        if ('history' in changes && changes.history !== this.state.history && !('event' in changes))
            changes = {
                ...this.withoutMoment(),
                event: this.report.histories[changes.history]?.peak?.event ?? 0,
                ...changes,
            };
        const differing = Object.entries(changes).filter(([name, value]) => this.state[name] !== value);
        if (!differing.length) return false;
        for (const [name, value] of differing) {
            this.state[name] = value;
            this.changed.add(name);
        }
        this.validate();
        this.scheduled ??= requestAnimationFrame(() => this.tell());
        return true;
    }

    writeSoon() {
        this.writing ??= setTimeout(() => this.write(), WRITE_AFTER);
    }

    withoutMoment() {
        const none = { range: null, height: null, span: null, block: null, stack: null };
        return { ...none, from: null, fromRange: null };
    }

    tell() {
        this.scheduled = null;
        const changed = this.changed;
        this.changed = new Set();
        for (const listener of this.listeners) listener(this.state, changed);
    }

    // METHOD of the browser's history: whether back leads to the address of before.
    write(method = 'replaceState') {
        clearTimeout(this.writing);
        this.writing = null;
        this.written = this.linkOf(this.state);
        history[method](null, '', this.written);
    }

    // What a piece of evidence shows: the state that the views then draw.
    showEvidence(finding, number) {
        const evidence = this.report.findings[finding].evidence[number];
        const index = evidence.history ?? 0;
        const changes = {
            ...this.withoutMoment(),
            query: null,
            line: evidence.line ?? null,
            stack: evidence.stack ?? null,
            finding,
            evidence: number,
            history: index,
            view: evidence.view ?? 'timeline',
            span: evidence.span ?? null,
            block: evidence.blocks?.length === 1 ? evidence.blocks[0] : null,
        };
        changes.event =
            evidence.event ?? evidence.span?.[1] ?? this.report.histories[index]?.peak?.event ?? 0;
        if (evidence.span) changes.range = widened(evidence.span, this.report.histories[index].events - 1);
        this.step(changes);
    }
}

function widened([from, to], last) {
    const margin = Math.max(2, Math.ceil((to - from) / 4));
    return [Math.max(0, from - margin), Math.min(last + 1, to + margin)];
}
