// What is drawn over the timeline's raster: both axes, marks, the event that is looked at, the span and names of bands.

import { axisStep, formatBytes, formatCount, formatTimes, shortText } from './format.js';
import { EDGE } from './timeline_layout.js';
import { iterationsOf } from './moments.js';
import { inkOn } from './theme.js';
import { nameOfClass } from './colours.js';
import { waitingSum } from './line_sums.js';

export const GUTTER = { left: 66, right: 8, top: 18, bottom: 36 };
const LABEL_WIDTH = 110,
    LABEL_ROWS = 15,
    LABELS = 7;

const LINE_SPACE = 40; // pixels for each line of a mark: with less of them the picture is lost behind lines
const TICK = 10;
const LETTER = 7, // pixels of a mark's name, for each letter
    BETWEEN = 8; // between two names
const SHORTEST = 14,
    LONGEST = 40; // letters of a name where marks are dense, and where they are not
// Other marks bear their names.
const MARK_SIGNS = { oom: 'OOM', violation: 'violation', peak: 'peak', 'active peak': 'active peak' };
const LEAST_STEP = 0.5; // pixels of height: a smaller step of an outline is not seen
const FLUSH = 2; // segments: the allocator, or the program, emptied the cache

// Views share them.
export function marksOf(history) {
    history.marks ??= listMarks(history);
    return history.marks;
}

function listMarks(history) {
    const { info } = history;
    const marks = peakMarks(history);
    const [first, repeated] = refusalMarks(history);
    marks.push(...first);
    const iterations = iterationsOf(history);
    const named = new Set(iterations.map(({ event }) => event));
    const isIteration = ({ kind, event }) => kind === 'annotation' && named.has(event);
    for (const mark of info.marks ?? []) if (!isIteration(mark)) marks.push(mark);
    marks.push(...flushesOf(history));
    for (const { event, name } of iterations) marks.push({ event, kind: 'iteration', label: name });
    return [...marks, ...repeated];
}

// Findings tell of the peak of what the program held. Where freed blocks wait for streams, the picture is highest at
// another event: both are marked.
function peakMarks(history) {
    const { peak, info } = history;
    const mark = (event, bytes) => ({ event, kind: 'peak', label: `peak: ${formatBytes(bytes)} allocated` });
    if (!history.waiting(peak)) return [mark(peak, history.allocated[peak])];
    const highest = {
        event: peak,
        kind: 'active peak',
        label: `peak of active memory: ${formatBytes(history.allocated[peak])}, with ${waitingSum(history, peak)}`,
    };
    return info.peak && info.peak.event !== peak
        ? [mark(info.peak.event, info.peak.allocated), highest]
        : [highest];
}

// Those that findings tell of, and the others, which may be so many that a list must not begin with them.
function refusalMarks(history) {
    const marks = [[], []];
    for (const { event, bytes, oom } of history.refusals())
        marks[oom?.event === event ? 0 : 1].push({
            event,
            kind: 'oom',
            label: `out of memory: ${formatBytes(bytes)} refused`,
        });
    return marks;
}

// Where several segments go back to the device one after the other.
function flushesOf(history) {
    const { segmentEnd, segmentSize, last } = history;
    const ended = [...segmentEnd.keys()]
        .filter((segment) => segmentEnd[segment] <= last)
        .sort((a, b) => segmentEnd[a] - segmentEnd[b]);
    const marks = [];
    for (let i = 0; i < ended.length;) {
        const first = i;
        let bytes = 0;
        do bytes += segmentSize[ended[i++]];
        while (i < ended.length && segmentEnd[ended[i]] - segmentEnd[ended[i - 1]] <= 1);
        if (i - first >= FLUSH)
            marks.push({
                event: segmentEnd[ended[first]],
                kind: 'flush',
                label: `cache given back: ${formatBytes(bytes)}`,
            });
    }
    return marks;
}

export function drawAxes(painter, chart, colours) {
    const { plot, view } = chart;
    const bytes = axisStep(view.top - view.bottom, plot.height / 45, true);
    for (let at = Math.ceil(view.bottom / bytes) * bytes; at <= view.top; at += bytes) {
        const y = chart.y(at);
        painter.line(plot.x - 4, y, plot.x, y, colours.soft);
        painter.line(plot.x, y, plot.x + plot.width, y, colours.soft, [1, 7]);
        painter.text(formatBytes(at), plot.x - 6, y, colours.soft, { align: 'end' });
    }
    painter.text('memory', plot.x - 6, plot.y - 9, colours.soft, { align: 'end' });
    drawEventAxis(painter, chart, colours);
    painter.frame(plot.x - 0.5, plot.y - 0.5, plot.width + 1, plot.height + 1, colours.rule);
}

// Events whose place is a round number, from 0, as recordings of one device number them.
function roundEvents({ plot, view, history }) {
    const step = axisStep(view.to - view.from, plot.width / 90, false);
    const events = [];
    const first = Math.max(Math.ceil((view.from - 1) / step), 0) * step + 1;
    for (let at = first; at <= Math.min(view.to, history.last); at += step) events.push(at);
    return events;
}

function drawEventAxis(painter, chart, colours) {
    const { plot, history } = chart;
    const bottom = plot.y + plot.height;
    const events = roundEvents(chart);
    for (const event of events) painter.line(chart.x(event), bottom, chart.x(event), bottom + 4, colours.soft);
    const hasRoom = (x) => x <= plot.x + plot.width - 20 && x >= plot.x + 14;
    const named = events.filter((event) => hasRoom(chart.x(event)));
    for (const event of named) {
        const number = formatCount(history.numberOf(event));
        painter.text(number, chart.x(event), bottom + 11, colours.soft, { align: 'center' });
    }
    painter.text('event', plot.x - 6, bottom + 11, colours.soft, { align: 'end' });
    if (history.timeOf(1) === null) return;
    const times = formatTimes(named.map((event) => history.timeOf(event)));
    named.forEach((event, i) => {
        const place = { align: 'center', size: 10 };
        painter.text(times[i], chart.x(event), bottom + 25, colours.soft, place);
    });
    painter.text('time', plot.x - 6, bottom + 25, colours.soft, { align: 'end', size: 10 });
}

export function drawMarks(painter, chart, colours) {
    const visible = chart.marks.filter((mark) => inView(mark.event, chart.view));
    // What is serious is named first: other names give way to it.
    const kinds = [
        ['oom', 'violation'],
        ['peak', 'active peak'],
        ['flush'],
        ['phase', 'annotation'],
        ['iteration'],
    ];
    const named = [];
    for (const kind of kinds) {
        const marks = visible.filter((mark) => kind.includes(mark.kind));
        const dense = marks.length > chart.plot.width / LINE_SPACE;
        const space = chart.plot.width / (marks.length + 1);
        const letters = Math.min(Math.max(Math.floor(space / LETTER) - 2, SHORTEST), LONGEST);
        for (const mark of marks) drawMark(painter, chart, mark, colours, { dense, letters, named });
    }
}

// NAMED: where names stand already. Many marks of a kind are short ticks, or nothing if they are not serious.
function drawMark(painter, chart, mark, colours, { dense, letters, named }) {
    const { plot } = chart;
    const serious = isSerious(mark),
        colour = serious ? colours.bad : colours.soft;
    const x = Math.round(chart.x(mark.event + 0.5)) + 0.5;
    if (!dense) painter.line(x, plot.y, x, plot.y + plot.height, colour, serious ? [6, 2] : [1, 4]);
    else if (serious) painter.line(x, plot.y, x, plot.y + TICK, colour);
    const sign =
        MARK_SIGNS[mark.kind] ??
        (mark.kind === 'iteration' || dense ? '' : shortText(mark.label ?? '', letters));
    if (!sign) return;
    const width = painter.widthOf(sign, { bold: serious });
    const left = Math.max(plot.x, Math.min(x - width / 2, plot.x + plot.width - width));
    if (named.some((other) => left < other.right + BETWEEN && other.left < left + width + BETWEEN)) return;
    named.push({ left, right: left + width });
    painter.text(sign, left, plot.y - 9, colour, { bold: serious });
}

function isSerious({ kind }) {
    return kind === 'oom' || kind === 'violation';
}

function inView(event, view) {
    return event >= view.from && event < view.to;
}

export function drawCursor(painter, chart, colours) {
    const { plot, view } = chart;
    if (chart.span) {
        const x1 = Math.max(chart.x(chart.span[0]), plot.x),
            x2 = Math.min(chart.x(chart.span[1] + 1), plot.x + plot.width);
        if (x2 > x1) {
            painter.rect(x1, plot.y, x2 - x1, plot.height, colours.accent, 0.14);
            painter.line(x1, plot.y, x1, plot.y + plot.height, colours.accent);
            painter.line(x2, plot.y, x2, plot.y + plot.height, colours.accent);
        }
    }
    if (chart.event === null || !inView(chart.event, view)) return;
    const x = Math.round(chart.x(chart.event + 0.5)) + 0.5;
    painter.line(x, plot.y - 4, x, plot.y + plot.height + 4, colours.text);
}

// The outline of BLOCK over all of its life that is in view; WIDTH: of the line.
export function drawBlock(painter, chart, block, colour, width) {
    const raster = chart.rasterInView();
    if (!raster) return;
    const { plot, history } = chart;
    const x = (column) => chart.x(raster.from + (column / raster.columns) * (raster.to - raster.from));
    const right = plot.x + plot.width,
        low = plot.y + plot.height;
    const upper = [],
        lower = [];
    let last = [Infinity, Infinity];
    for (const { column, end, bottom } of chart.areaOf(block, raster)) {
        const from = Math.min(Math.max(x(column), plot.x), right),
            to = Math.min(Math.max(x(end), plot.x), right);
        const y = [bottom + history.blockSize[block], bottom].map((bytes) =>
            Math.min(Math.max(chart.y(bytes), plot.y), low),
        );
        if (to <= from || (y[0] === y[1] && (y[0] === plot.y || y[0] === low))) continue;
        if (y.every((at, i) => Math.abs(at - last[i]) < LEAST_STEP)) {
            upper.at(-1)[0] = lower.at(-1)[0] = to;
            continue;
        }
        upper.push([from, y[0]], [to, y[0]]);
        lower.push([from, y[1]], [to, y[1]]);
        last = y;
    }
    if (upper.length) painter.outline([...upper, ...lower.reverse()], colour, width);
}

// Names on bands that are large enough, at some columns: the raster tells whether a text fits.
export function drawBandNames(painter, chart, colours) {
    const { raster, plot, history, view } = chart;
    if (!raster || raster.done < raster.columns) return;
    const named = new Set();
    for (let i = 0; i < LABELS; i++) {
        const x = plot.x + (plot.width * (i + 0.5)) / LABELS;
        const column = raster.columnOf(chart.eventAt(x));
        let height = 0;
        for (const block of history.liveBlocks(raster.moments[column])) {
            const bottom = height;
            height += history.blockSize[block];
            const low = Math.min(chart.y(Math.max(bottom, view.bottom)), plot.y + plot.height);
            const high = Math.max(chart.y(height), plot.y);
            if (low - high < LABEL_ROWS || named.has(block) || !isFlat(chart, column, (low + high) / 2))
                continue;
            named.add(block);
            const { colour } = chart.fillOf(chart.classes[block], colours);
            const dimmed = chart.dimmed && !chart.mask[block];
            const names = [history.nameOf(block), nameOfClass(chart.colours, block)].filter(Boolean);
            const text = `${formatBytes(history.blockSize[block])} ${shortText(names.join(' · '), 60)}`;
            painter.text(text, x, (low + high) / 2, dimmed ? colours.text : inkOn(colour), {
                align: 'center',
                clip: LABEL_WIDTH,
                size: 10,
                ground: colour,
            });
        }
    }
}

// Whether the raster has one class for the length and height of a name around COLUMN and Y.
function isFlat(chart, column, y) {
    const { raster } = chart;
    const perPixel =
        ((raster.columns / (raster.to - raster.from)) * (chart.view.to - chart.view.from)) / chart.plot.width;
    const reach = Math.round((LABEL_WIDTH / 2) * perPixel);
    const row = Math.floor(((chart.bytesAt(y) - raster.bottom) / (raster.top - raster.bottom)) * raster.rows);
    const value = raster.pixels[column * raster.rows + row] & ~EDGE;
    for (let c = column - reach; c <= column + reach; c += Math.max(1, Math.floor(reach / 8))) {
        if (c < 0 || c >= raster.columns) return false;
        for (const r of [row - 4, row, row + 4])
            if ((raster.pixels[c * raster.rows + r] & ~EDGE) !== value) return false;
    }
    return true;
}
