// The view "Timeline": the chart with its legend, the block or the span that is looked at, and the same as a table.

import { COLOURINGS, coloursOf } from './colours.js';
import { DataTable } from './data_table.js';
import { TimelineChart } from './timeline_chart.js';
import { blockDetails, blockSummary } from './block_details.js';
import { button, chooser, element, replaceChildren } from './dom.js';
import { formatBytes, plural, shortText } from './format.js';
import { highlightOf } from './search.js';
import { legendEntries, legendItems, patternsChoice } from './legend.js';
import { allocatedSum, groupingOf, linesAt, linesInSpan, memorySums, peakSum } from './line_sums.js';
import { listenToChart } from './timeline_input.js';

const HELP =
    'Wheel: zoom · Shift+wheel: zoom height · drag: pan · Shift+drag: select a span · click: block. Keys: ' +
    '← → event (Shift: 10), ↑ ↓ block, A D pan, W S zoom (Shift: height), PgUp PgDn up and down, P peak, 0 all, ' +
    '[ ] span, Esc clear.';

export class TimelineView {
    constructor(app) {
        this.app = app;
        this.name = 'timeline';
        this.chart = new TimelineChart('Active memory timeline. The table below says the same in words.', {
            view: () => this.keepRange(),
        });
        listenToChart(this.chart, {
            hover: (place, x, y) => this.hover(place, x, y),
            pick: (event, block) => app.set({ event, block }),
            span: (from, to) => app.set({ span: [from, to] }),
            key: (event) => this.key(event),
        });
        this.tip = element('div', { class: 'tip', hidden: true });
        this.chart.node.append(this.tip);
        this.legend = element('div', { class: 'legend', role: 'group', 'aria-label': 'Colours' });
        this.details = element('div', { class: 'side' });
        this.moment = element('div', { class: 'moment' });
        this.root = element(
            'div',
            { class: 'view timeline' },
            this.controls(),
            this.chart.node,
            element('p', { class: 'note keys' }, HELP),
            this.legend,
            element('div', { class: 'columns' }, this.moment, this.details),
        );
    }

    controls() {
        const colour = chooser('Colour by', COLOURINGS, (value) => this.app.set({ colour: value }));
        this.colour = colour.select;
        const patterns = patternsChoice(this.app);
        this.patterns = patterns.input;
        const zoom = (factor) => () => this.chart.zoom(factor);
        return element(
            'div',
            { class: 'tools' },
            colour.node,
            patterns.node,
            element(
                'span',
                { class: 'group', role: 'group', 'aria-label': 'Zoom' },
                button('−', zoom(1.6), { 'aria-label': 'Zoom out' }),
                button('+', zoom(0.625), { 'aria-label': 'Zoom in' }),
                button('All', () => this.app.set({ range: null, height: null })),
                button('Fit to allocated', () => this.fitHeight()),
            ),
            element(
                'span',
                { class: 'group', role: 'group', 'aria-label': 'Span' },
                button('Span starts here', () => this.spanFrom()),
                button('Span ends here', () => this.spanTo()),
                button('Clear', () => this.app.set({ span: null })),
            ),
        );
    }

    // Where much more is reserved than allocated, the blocks are a thin line at the ground.
    fitHeight() {
        const { history } = this.chart;
        if (history)
            this.app.set({ height: [0, Math.max(1, Math.round(history.allocated[history.peak] * 1.04))] });
    }

    spanFrom() {
        const { event, span } = this.app.state;
        this.app.set({ span: [event, Math.max(event, span?.[1] ?? event)] });
    }

    spanTo() {
        const { event, span } = this.app.state;
        this.app.set({ span: [Math.min(event, span?.[0] ?? event), event] });
    }

    update(state, changed) {
        const history = this.app.history();
        if (!history) {
            replaceChildren(this.moment, element('p', {}, 'These inputs have no memory history.'));
            return;
        }
        const all = changed.has('view') || changed.has('history');
        const painting = ['colour', 'query', 'line', 'stack', 'finding', 'evidence', 'legendEntry'];
        if (all || painting.some((name) => changed.has(name))) this.updateColours(history, state);
        if (all || changed.has('theme') || changed.has('patterns')) this.drawLegend(state);
        this.colour.value = state.colour;
        this.chart.patterns = this.patterns.checked = Boolean(state.patterns);
        this.chart.event = state.event;
        this.chart.span = state.span ?? null;
        this.chart.selected = state.block ?? null;
        if (all || changed.has('range') || changed.has('height')) this.chart.show(state.range, state.height);
        this.chart.overlay.setAttribute('aria-label', this.sentence(history, state));
        this.chart.schedule();
        if (all || ['event', 'span', 'line'].some((name) => changed.has(name)))
            this.drawMoment(history, state);
        this.drawDetails(history, state);
    }

    sentence(history, { event }) {
        return (
            `Active memory timeline of ${shortText(history.info.name, 80)}. At ${history.eventName(event)}: ` +
            `${memorySums(history, event)}. ` +
            `The picture is highest at ${history.eventName(history.peak)}: ${peakSum(history)}.`
        );
    }

    updateColours(history, state) {
        if (this.coloured?.history !== history || this.coloured.colouring !== state.colour)
            this.coloured = { history, colouring: state.colour, ...coloursOf(history, state.colour) };
        const found = (this.app.highlight = highlightOf(history, state, this.app.report));
        this.chart.setHistory(history, this.coloured, found?.mask ?? null);
        this.app.noteFound?.(found);
        this.drawLegend(state);
    }

    drawLegend(state) {
        const { hasReserved } = this.chart.history;
        const items = legendItems([this.coloured.legend], state.patterns, hasReserved);
        replaceChildren(this.legend, legendEntries(items));
    }

    // The chart moved by itself: the address follows, and the chart must not be told again.
    keepRange() {
        const { state } = this.app;
        state.range = this.chart.range();
        state.height = this.chart.height();
        this.app.writeSoon();
    }

    hover(place, x, y) {
        const { chart, tip } = this;
        const same = place?.block === chart.hover?.block && place?.event === chart.hover?.event;
        chart.hover = place;
        tip.hidden = !place;
        if (place) {
            if (!same)
                replaceChildren(
                    tip,
                    blockSummary(chart.history, place.block).map((line) => element('div', {}, line)),
                    element(
                        'div',
                        { class: 'soft' },
                        `at ${chart.history.eventName(place.event)}: ${allocatedSum(chart.history, place.event)}`,
                    ),
                );
            const left = Math.max(0, Math.min(x + 14, chart.node.clientWidth - tip.offsetWidth - 4));
            tip.style.left = `${left}px`;
            tip.style.top = `${y + 16 + tip.offsetHeight > chart.node.clientHeight ? Math.max(0, y - tip.offsetHeight - 8) : y + 16}px`;
        }
        if (!same) chart.schedule();
    }

    drawMoment(history, state) {
        replaceChildren(
            this.moment,
            state.span ? this.spanTable(history, state.span) : this.momentTable(history, state.event),
        );
    }

    momentTable(history, event) {
        const rows = linesAt(history, event).map(({ name, bytes, count }) => [name, bytes, count]);
        const title = `At ${history.eventName(event)}: ${allocatedSum(history, event)}, by ${groupingOf(history).word.toLowerCase()}`;
        return this.lineTable(history, {
            title,
            rows,
            columns: [
                { name: groupingOf(history).word, unit: 'text' },
                { name: 'Bytes', unit: 'B' },
                { name: 'Blocks', unit: 'count' },
            ],
        });
    }

    spanTable(history, [from, to]) {
        const rows = linesInSpan(history, from, to).map((sum) => [
            sum.name,
            sum.kept,
            sum.allocated,
            sum.freed,
            sum.count,
        ]);
        const change = history.allocated[to] - history.allocated[Math.max(0, from - 1)];
        const title = `From ${history.eventName(from)} to ${history.eventName(to)}: ${change >= 0 ? '+' : ''}${formatBytes(change)}, by ${groupingOf(history).word.toLowerCase()}`;
        return this.lineTable(history, {
            title,
            rows,
            columns: [
                { name: groupingOf(history).word, unit: 'text' },
                { name: 'Kept', unit: 'B' },
                { name: 'Allocated', unit: 'B' },
                { name: 'Freed', unit: 'B' },
                { name: 'Blocks', unit: 'count' },
            ],
        });
    }

    lineTable(history, table) {
        return new DataTable(table, {
            shown: 12,
            onrow: ([name]) => this.app.set(groupingOf(history).changes(name)),
        }).node;
    }

    drawDetails(history, { block }) {
        if (this.detailsOf === block && this.detailsHistory === history) return;
        this.detailsOf = block;
        this.detailsHistory = history;
        replaceChildren(
            this.details,
            block === null || block === undefined
                ? element(
                      'p',
                      { class: 'note' },
                      'Click a block, or press ↑ in the chart, to see its size, life, stream, pool and stack.',
                  )
                : blockDetails(this.app, history, block),
        );
    }

    key(event) {
        const { chart, app } = this;
        if (event.ctrlKey || event.metaKey || event.altKey || !chart.history) return false;
        const step = event.shiftKey ? 10 : 1;
        const width = chart.plot.width;
        const actions = {
            ArrowLeft: () => this.stepTo(app.state.event - step),
            ArrowRight: () => this.stepTo(app.state.event + step),
            Home: () => this.stepTo(0),
            End: () => this.stepTo(chart.history.last),
            p: () => this.stepTo(chart.history.peak),
            ArrowUp: () => this.stepBlock(1),
            ArrowDown: () => this.stepBlock(-1),
            a: () => chart.pan(width / 5),
            d: () => chart.pan(-width / 5),
            W: () => chart.zoomHeightByKey(0.7),
            S: () => chart.zoomHeightByKey(1 / 0.7),
            PageUp: () => chart.panHeightByKey(0.2),
            PageDown: () => chart.panHeightByKey(-0.2),
            w: () => chart.zoom(0.7, this.cursorX()),
            s: () => chart.zoom(1 / 0.7, this.cursorX()),
            '+': () => chart.zoom(0.7, this.cursorX()),
            '-': () => chart.zoom(1 / 0.7, this.cursorX()),
            0: () => app.set({ range: null, height: null }),
            '[': () => this.spanFrom(),
            ']': () => this.spanTo(),
            Escape: () =>
                app.set({ block: null, span: null, query: null, line: null, stack: null, finding: null }),
            Enter: () => app.set({ view: 'state' }),
        };
        const action = actions[event.key] ?? actions[event.key.toLowerCase()];
        if (!action) return false;
        action();
        return true;
    }

    cursorX() {
        const x = this.chart.x(this.app.state.event + 0.5);
        const { plot } = this.chart;
        return x >= plot.x && x <= plot.x + plot.width ? x : undefined;
    }

    // Moves to EVENT and takes the chart along.
    stepTo(event) {
        const next = Math.min(Math.max(event, 0), this.chart.history.last);
        const { from, to } = this.chart.view;
        if (next < from || next >= to)
            this.chart.move({ from: next - (to - from) / 2, to: next + (to - from) / 2 });
        this.app.set({ event: next });
    }

    stepBlock(step) {
        const live = this.chart.history.liveBlocks(this.app.state.event);
        if (!live.length) return;
        const at = live.indexOf(this.app.state.block);
        const next =
            at < 0 ? (step > 0 ? 0 : live.length - 1) : Math.min(Math.max(at + step, 0), live.length - 1);
        this.app.set({ block: live[next] });
    }

    picture() {
        const { chart } = this;
        if (!chart.history) return null;
        const { history } = chart;
        return {
            ...chartPicture(chart),
            heading: shortText(history.info.name, 120),
            notes: [
                this.sentence(history, this.app.state),
                chartScale(chart),
                this.app.highlight ? `In full colour: ${foundSentence(this.app.highlight)}.` : '',
            ].filter(Boolean),
            legend: legendItems([this.coloured.legend], true, history.hasReserved),
        };
    }
}

export function chartPicture(chart) {
    const { clientWidth: width, clientHeight: height } = chart.node;
    return { width, height, paint: (painter) => chart.paint(painter) };
}

// What of the history is shown, and its scales.
export function chartScale({ history, view }) {
    const [from, to] = [Math.floor(view.from), Math.min(Math.ceil(view.to) - 1, history.last)];
    return (
        `Shown: from ${history.eventName(from)} to ${history.eventName(to)} of ${plural(history.last, 'event')}, ` +
        `memory from ${formatBytes(Math.round(view.bottom))} to ${formatBytes(Math.round(view.top))}. ` +
        'The height of a band is the size of its block.'
    );
}

export function foundSentence(found) {
    return found
        ? `${plural(found.count, 'block')}, ${formatBytes(found.bytes)}: ${shortText(found.label, 80)}`
        : '';
}
