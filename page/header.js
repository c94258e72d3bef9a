// The head of the page: views, history and event, search, the finding that is followed, saving and light or dark.

import { button, chooser, copyText, element, replaceChildren, setNames, setOptions } from './dom.js';
import { findBlocks } from './search.js';
import { formatCount, shortText } from './format.js';
import { foundSentence } from './timeline_view.js';
import { memorySums } from './line_sums.js';
import { marksOf } from './timeline_axis.js';

export const VIEW_NAMES = [
    ['findings', 'Findings'],
    ['timeline', 'Timeline'],
    ['state', 'State'],
    ['flame', 'Flame graph'],
    ['compare', 'Compare'],
    ['tables', 'Tables'],
];
const MARKS_LISTED = 300;

export class Header {
    // ACTIONS: { save(format), theme() }
    constructor(app, actions) {
        this.app = app;
        this.actions = actions;
        this.status = element('span', { class: 'status', role: 'status' });
        this.nav = element('nav', { class: 'views', 'aria-label': 'Views' });
        this.finding = element('div', {
            class: 'banner',
            hidden: true,
            role: 'region',
            'aria-label': 'Finding',
        });
        this.found = element('span', { class: 'soft', role: 'status' });
        const title = shortText(app.report.title ?? 'gmd', 200);
        this.root = element(
            'header',
            {},
            element(
                'div',
                { class: 'top' },
                element('h1', {}, title),
                element(
                    'span',
                    { class: 'soft version' },
                    `gmd ${shortText(String(app.report.gmd ?? ''), 40)}`,
                ),
                this.tools(),
            ),
            this.nav,
            app.report.histories.length ? this.moment() : null,
            this.finding,
        );
        app.noteFound = (found) => {
            this.found.textContent = foundSentence(found);
        };
    }

    tools() {
        const { actions } = this;
        return element(
            'div',
            { class: 'tools page-tools' },
            button('Copy link', () => {
                this.app.write();
                copyText(location.href, this.status);
            }),
            button('Save SVG', () => this.save('svg')),
            button('Save PNG', () => this.save('png')),
            button('Print', () => window.print()),
            button('Light / dark', () => actions.theme()),
            this.status,
        );
    }

    save(format) {
        this.status.textContent = this.actions.save(format) ? '' : 'This view has no picture';
    }

    moment() {
        const { app } = this;
        const history = chooser('History', [], (value) => app.set({ history: Number(value) }));
        this.history = history.select;
        this.event = element('input', {
            type: 'number',
            min: '0',
            placeholder: 'start',
            onchange: () => app.set({ event: this.typedEvent() }),
        });
        const go = chooser('Go to', [], (value) => value && app.set({ event: Number(value) }));
        this.marks = go.select;
        this.range = element('span', { class: 'soft range' });
        this.sums = element('span', { class: 'sums' });
        return element(
            'div',
            { class: 'moment-bar', role: 'group', 'aria-label': 'Moment and search' },
            app.report.histories.length > 1 && history.node,
            element('label', { class: 'field' }, element('span', {}, 'Event'), this.event),
            this.range,
            element(
                'span',
                { class: 'group' },
                this.stepper('‹', 'Previous event', -1),
                this.stepper('›', 'Next event', 1),
            ),
            go.node,
            this.sums,
            this.searchBox(),
        );
    }

    // Nothing typed is the state before the first event.
    typedEvent() {
        const { value } = this.event;
        return value === '' ? 0 : this.app.history().eventOf(Math.max(0, Math.round(Number(value) || 0)));
    }

    stepper(sign, label, step) {
        return button(sign, () => this.app.set({ event: Math.max(0, this.app.state.event + step) }), {
            'aria-label': label,
        });
    }

    searchBox() {
        this.query = element('input', {
            type: 'search',
            placeholder: 'Frame, size or address',
            'aria-label': 'Search blocks',
            onchange: () => this.app.set({ query: this.query.value || null }),
            onkeydown: (event) => {
                if (event.key !== 'Enter') return;
                if (this.query.value === (this.app.state.query ?? '')) this.jump(event.shiftKey ? -1 : 1);
            },
        });
        return element(
            'span',
            { class: 'search', role: 'search' },
            this.query,
            button('‹', () => this.jump(-1), { 'aria-label': 'Previous match' }),
            button('›', () => this.jump(1), { 'aria-label': 'Next match' }),
            this.found,
        );
    }

    // To the allocation of the next block that the search found, seen from the chosen block or the event.
    jump(step) {
        const { app } = this;
        const history = app.history();
        if (!app.state.query || !history) return;
        const { mask, count } = findBlocks(history, app.state.query);
        if (!count) return;
        let at = app.state.block ?? history.allocatedUpTo(app.state.event) - 1;
        do at = (at + step + mask.length) % mask.length;
        while (!mask[at]);
        app.set({ block: at, event: history.blockAlloc[at] });
    }

    update(state, changed) {
        replaceChildren(
            this.nav,
            this.usefulViews(state).map(([name, text]) =>
                element(
                    'a',
                    {
                        href: `#view=${name}`,
                        'aria-current': state.view === name ? 'page' : null,
                        onclick: (event) => {
                            event.preventDefault();
                            this.app.set({ view: name });
                        },
                    },
                    text,
                ),
            ),
        );
        this.nav.querySelector('[aria-current]')?.scrollIntoView?.({ block: 'nearest', inline: 'nearest' });
        if (this.event) this.updateMoment(state, changed);
        this.updateFinding(state);
    }

    // The views that have something to show, and the one that is shown.
    usefulViews(state) {
        const { histories, tables } = this.app.report;
        const needs = {
            timeline: histories.length,
            state: histories.length,
            flame: histories.length,
            compare: this.app.hasComparable(),
            tables: tables.length,
        };
        return VIEW_NAMES.filter(([name]) => name === state.view || !(name in needs) || needs[name]);
    }

    updateMoment(state, changed) {
        const history = this.app.history();
        this.root.querySelector('.moment-bar').hidden = state.view === 'findings' || state.view === 'tables';
        const names = this.app.report.histories.map(({ name }, i) => [i, name]);
        setNames(this.history, names, state.history);
        if (changed.has('history') || changed.has('view'))
            setOptions(this.marks, markOptions(history, marksOf(history)), '');
        this.marks.value = '';
        this.event.max = history.numberOf(history.last);
        this.event.value = state.event < 1 ? '' : history.numberOf(state.event);
        this.query.value = state.query ?? '';
        if (!state.query && !state.line && (state.stack ?? null) === null && (state.finding ?? null) === null)
            this.found.textContent = '';
        const [first, last] = [1, history.last].map((event) => formatCount(history.numberOf(event)));
        this.range.textContent = history.last ? `of ${first} to ${last}` : 'no events';
        this.sums.textContent =
            `${memorySums(history, state.event)}` +
            `${history.info.truncated ? ' · the recording is incomplete' : ''}`;
    }

    updateFinding(state) {
        const finding = this.app.report.findings[state.finding];
        const shown = finding && state.view !== 'findings';
        this.finding.hidden = !shown;
        if (!shown) return;
        const count = finding.evidence?.length ?? 0,
            at = state.evidence ?? 0;
        replaceChildren(
            this.finding,
            element('strong', {}, shortText(finding.title, 300)),
            ' ',
            finding.evidence?.[at] && element('span', {}, shortText(finding.evidence[at].label ?? '', 200)),
            element(
                'span',
                { class: 'group' },
                count > 1 &&
                    button(`Evidence ${at + 1} of ${count}: next`, () =>
                        this.app.showEvidence(state.finding, (at + 1) % count),
                    ),
                button('All findings', () => this.app.set({ view: 'findings' })),
                button('Close', () => this.app.set({ finding: null, evidence: null, line: null })),
            ),
        );
    }
}

// A list of thousands helps nobody: the last entry says how many are left out, and where they are.
function markOptions(history, marks) {
    const listed = marks
        .slice(0, MARKS_LISTED)
        .map((mark) => [
            mark.event,
            `${history.eventName(mark.event).replace('event ', '')}: ${shortText(mark.label ?? mark.kind, 120)}`,
        ]);
    const left = marks.length - listed.length;
    const rest = left > 0 ? [['', `… and ${formatCount(left)} more, marked in the timeline`]] : [];
    return [['', '…'], ...listed, ...rest];
}
