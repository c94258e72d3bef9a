// The view "Compare": two histories, of two inputs or of two ranks of a job, under each other on one scale, and what
// differs by line.

import { DataTable } from './data_table.js';
import { TimelineChart } from './timeline_chart.js';
import { blockSummary } from './block_details.js';
import { button, chooser, element, replaceChildren, setNames } from './dom.js';
import { chartPicture, chartScale } from './timeline_view.js';
import { colourBlocks, coloursOf } from './colours.js';
import { formatBytes, formatSignedBytes, shortText } from './format.js';
import { highlightOf } from './search.js';
import { legendEntries, legendItems, patternsChoice } from './legend.js';
import { groupingOf, linesAt, linesCompared, memorySums, peakName, peakSum } from './line_sums.js';
import { freeSentence } from './state_reasons.js';
import { commonMoment, counterpart, mostReserved } from './moments.js';
import { listenToChart } from './timeline_input.js';
import { themeColours } from './theme.js';

const HALF_TITLE = 20; // pixels, of a half in a saved picture

export class CompareView {
    constructor(app) {
        this.app = app;
        this.name = 'compare';
        this.tip = element('p', { class: 'note', role: 'status' });
        this.upper = this.half('Upper timeline', 'range', (event) => app.set({ event }));
        this.lower = this.half('Lower timeline', 'fromRange', (event) =>
            app.set({ from: event, fromHistory: this.otherIndex(app.state) }),
        );
        this.legend = element('div', { class: 'legend', role: 'group', 'aria-label': 'Colours' });
        this.text = element('div', { class: 'reasons' });
        this.list = element('div', { class: 'moment' });
        this.all = element('div', { class: 'moment' });
        this.root = element(
            'div',
            { class: 'view compare' },
            this.controls(),
            this.text,
            this.upper.node,
            this.lower.node,
            element(
                'p',
                { class: 'note keys' },
                'Keys: ← → event (Shift: 10), A D pan, W S zoom (Shift: height), PgUp PgDn up and down, P peak, 0 all.',
            ),
            this.legend,
            this.tip,
            this.list,
            this.all,
        );
    }

    // RANGE: the name of its events in the state.
    half(label, range, pick) {
        const chart = new TimelineChart(label, { view: () => this.keepView(chart, range) });
        const title = element('h3');
        listenToChart(chart, {
            pick,
            span: () => {},
            hover: (place) => {
                chart.hover = place;
                this.tip.textContent = place ? blockSummary(chart.history, place.block).join(' · ') : '';
                chart.schedule();
            },
            key: (event) => this.key(event, chart, pick),
        });
        const free = element('p', { class: 'note' });
        const node = element('section', { class: 'half' }, title, free, chart.node);
        return { chart, range, title, free, node };
    }

    key(event, chart, pick) {
        if (event.ctrlKey || event.metaKey || event.altKey || !chart.history) return false;
        const step = (by) =>
            pick(Math.min(Math.max(chart.event + by * (event.shiftKey ? 10 : 1), 0), chart.history.last));
        const actions = {
            ArrowLeft: () => step(-1),
            ArrowRight: () => step(1),
            W: () => chart.zoomHeightByKey(0.7),
            S: () => chart.zoomHeightByKey(1 / 0.7),
            PageUp: () => chart.panHeightByKey(0.2),
            PageDown: () => chart.panHeightByKey(-0.2),
            a: () => chart.pan(chart.plot.width / 5),
            d: () => chart.pan(-chart.plot.width / 5),
            w: () => chart.zoom(0.7),
            s: () => chart.zoom(1 / 0.7),
            '+': () => chart.zoom(0.7),
            '-': () => chart.zoom(1 / 0.7),
            p: () => pick(chart.history.peak),
            0: () => chart.move({ ...chart.full }),
        };
        const action = actions[event.key] ?? actions[event.key.toLowerCase()];
        if (!action) return false;
        action();
        return true;
    }

    // A chart moved by itself: the address follows, and the other chart keeps to its scale of memory.
    keepView(chart, range) {
        const { state } = this.app;
        state[range] = chart.range();
        state.height = chart.height();
        state.fromHistory = this.otherIndex(state);
        state.from ??= this.lower.chart.event;
        const other = chart === this.upper.chart ? this.lower.chart : this.upper.chart;
        const { bottom, top } = chart.view;
        if (other.view) other.setView({ ...other.view, bottom, top });
        this.app.writeSoon();
    }

    controls() {
        const one = chooser('Upper', [], (value) => this.app.set({ history: Number(value) }));
        const other = chooser('Lower', [], (value) => this.choose(Number(value)));
        const patterns = patternsChoice(this.app);
        this.one = one.select;
        this.other = other.select;
        this.patterns = patterns.input;
        return element(
            'div',
            { class: 'tools' },
            one.node,
            other.node,
            button('Each at its peak', () => this.atPeaks()),
            button('Where the upper reserved most', () =>
                this.corresponding(mostReserved(this.app.history())),
            ),
            button('Align lower to upper', () => this.corresponding(this.app.state.event)),
            button('Difference as a flame graph', () => this.asFlame()),
            patterns.node,
        );
    }

    choose(index) {
        const { peak } = this.app.report.histories[index];
        this.app.set({ fromHistory: index, from: peak?.event ?? 0, fromRange: null });
    }

    shownHistories() {
        return [this.app.history(), this.app.history(this.otherIndex(this.app.state))];
    }

    atPeaks() {
        const [upper, lower] = this.shownHistories();
        this.app.set({ event: upper.peak, fromHistory: lower.index, from: lower.peak });
    }

    // The upper at EVENT and the lower at the moment that corresponds to it, or at its peak where none does.
    corresponding(event) {
        const [upper, lower] = this.shownHistories();
        const from = counterpart(upper, event, lower)?.event ?? lower.peak;
        this.app.set({ event, fromHistory: lower.index, from });
    }

    asFlame() {
        const [, { index, last }] = this.shownHistories();
        this.app.set({ view: 'flame', fromHistory: index, from: Math.min(this.lower.chart.event, last) });
    }

    // Without a choice: the next history that can be compared, or the next.
    otherIndex(state) {
        const { histories } = this.app.report;
        if (histories[state.fromHistory]) return state.fromHistory;
        const following = histories.map((_, i) => (state.history + 1 + i) % histories.length);
        return (
            following.find((i) => i !== state.history && this.app.isComparable(state.history, i)) ??
            following[0]
        );
    }

    update(state, changed) {
        const { histories } = this.app.report;
        if (!histories.length) {
            replaceChildren(this.text, element('p', {}, 'These inputs have no memory history.'));
            return;
        }
        const names = histories.map(({ name }, i) => [i, name]);
        const index = this.otherIndex(state);
        setNames(this.one, names, state.history);
        setNames(this.other, names, index);
        const one = this.app.history(),
            other = this.app.history(index);
        const event = Math.min(
            state.fromHistory === index && state.from !== null ? (state.from ?? other.peak) : other.peak,
            other.last,
        );
        const top = Math.max(one.top, other.top);
        const repaint =
            changed.has('view') ||
            ['history', 'fromHistory', 'colour', 'query', 'line'].some((name) => changed.has(name));
        if (repaint) this.colour(one, other, state);
        if (repaint || changed.has('patterns')) this.drawLegend(one, other, state);
        const moved = ['range', 'fromRange', 'height'].some((name) => changed.has(name));
        this.fill(this.upper, one, state.event, { top, repaint, moved });
        this.fill(this.lower, other, event, { top, repaint, moved });
        this.describe(one, state.event, other, event);
        if (changed.has('view')) this.listAll();
    }

    // What has a name in both has one colour in both.
    colour(one, other, state) {
        this.upper.colours = coloursOf(one, state.colour);
        this.lower.colours = colourBlocks(other, state.colour, this.upper.colours.legend);
        this.legends = [this.upper.colours.legend, this.lower.colours.legend];
    }

    drawLegend(one, other, { patterns }) {
        const hasReserved = one.hasReserved || other.hasReserved;
        replaceChildren(this.legend, legendEntries(legendItems(this.legends, patterns, hasReserved)));
        this.patterns.checked = Boolean(patterns);
    }

    fill(half, history, event, { top, repaint, moved }) {
        const { state, report } = this.app;
        if (repaint) {
            const found = highlightOf(history, { ...state, stack: null, finding: null }, report);
            half.chart.setHistory(history, half.colours, found?.mask ?? null, top);
        }
        if (repaint || moved) half.chart.show(state[half.range], state.height);
        half.chart.patterns = Boolean(state.patterns);
        half.chart.event = event;
        half.title.textContent =
            `${shortText(history.info.name, 80)}: ${memorySums(history, event)} at ${history.eventName(event)}; ` +
            peakSum(history);
        half.free.textContent = history.hasReserved ? freeSentence(history, event) : '';
        half.chart.overlay.setAttribute('aria-label', `Timeline of ${half.title.textContent}`);
        half.chart.schedule();
    }

    describe(one, event, other, otherEvent) {
        const peaks = other.allocated[other.peak] - one.allocated[one.peak];
        const reserved = other.reserved[mostReserved(other)] - one.reserved[mostReserved(one)];
        replaceChildren(
            this.text,
            element(
                'p',
                {},
                `Lower minus upper: ${peakName([one, other])} ${formatSignedBytes(peaks)}, most reserved ` +
                    `${formatSignedBytes(reserved)}, allocated at these moments ` +
                    `${formatSignedBytes(other.allocated[otherEvent] - one.allocated[event])}.`,
            ),
            element(
                'p',
                {},
                `The moments: upper ${one.eventName(event)}, lower ${other.eventName(otherEvent)}; ` +
                    `${commonMoment(one, event, other, otherEvent)}.`,
            ),
            element('p', { class: 'note' }, 'Both share one memory scale; each has its own event axis.'),
        );
        const grouping = groupingOf(one);
        const rows = linesCompared(linesAt(one, event), linesAt(other, otherEvent)).map((row) => [
            row.name,
            row.other - row.one,
            row.one,
            row.other,
        ]);
        replaceChildren(
            this.list,
            new DataTable(
                {
                    title: `Difference by ${grouping.word.toLowerCase()}`,
                    rows,
                    columns: [
                        { name: grouping.word, unit: 'text' },
                        { name: 'Lower − upper', unit: '+B' },
                        { name: 'Upper', unit: 'B' },
                        { name: 'Lower', unit: 'B' },
                    ],
                },
                { shown: 20, onrow: ([line]) => this.app.set(grouping.changes(line)) },
            ).node,
        );
    }

    listAll() {
        const { histories } = this.app.report;
        const rows = histories.map((known, i) => [
            known.name,
            known.device ?? '',
            known.events - 1, // event 0 is the state before the first
            known.blocks,
            known.peak?.allocated ?? null,
            this.app.columns.get(`${known.prefix}o.event`).length,
            i,
        ]);
        const columns = [
            { name: 'History', unit: 'text' },
            { name: 'Device', unit: 'text' },
            { name: 'Events', unit: 'count' },
            { name: 'Blocks', unit: 'count' },
            { name: 'Peak', unit: 'B' },
            { name: 'OOMs', unit: 'count' },
        ];
        replaceChildren(
            this.all,
            new DataTable(
                { title: 'All histories (click one to show it below)', columns, rows },
                { onrow: (row) => this.choose(row.at(-1)) },
            ).node,
        );
    }

    picture() {
        const halves = [this.upper, this.lower];
        if (!halves.every(({ chart }) => chart.history)) return null;
        const parts = halves.map(({ chart, title }) => ({
            ...chartPicture(chart),
            chart,
            title: title.textContent,
        }));
        const [upper, lower] = parts;
        const paint = (painter) => {
            const { text } = themeColours();
            let y = 0;
            for (const part of parts) {
                painter.text(part.title, 0, y + HALF_TITLE / 2, text, {
                    bold: true,
                    clip: part.width,
                    cut: 'end',
                });
                painter.within(0, y + HALF_TITLE, () => part.paint(painter));
                y += HALF_TITLE + part.height;
            }
        };
        return {
            width: upper.width,
            height: upper.height + lower.height + 2 * HALF_TITLE,
            paint,
            heading: 'Comparison',
            notes: [
                ...[...this.text.children].map((line) => line.textContent),
                `Upper: ${chartScale(upper.chart)}`,
                `Lower: ${chartScale(lower.chart)}`,
            ],
            legend: legendItems(
                this.legends,
                true,
                parts.some(({ chart }) => chart.history.hasReserved),
            ),
        };
    }
}
