// All that is known of one block, and ways to look at it elsewhere.

import { button, copyText, element, factList } from './dom.js';
import {
    formatAddress,
    formatBytes,
    formatCount,
    formatMicroseconds,
    plural,
    shortText,
    visibleText,
} from './format.js';

const FRAME_LENGTH = 400;

function lifeOf(history, block) {
    const alloc = history.blockAlloc[block],
        end = history.blockEnd[block];
    const before = history.timeOf(alloc),
        after = end <= history.last ? history.timeOf(end) : null;
    const time = before !== null && after !== null ? `, ${formatMicroseconds(after - before)}` : '';
    return end > history.last ? 'to the end of the recording' : `${plural(end - alloc, 'event')}${time}`;
}

// Streams make a difference between asking for a free and its completion: the block is unusable in between.
function freeOf(history, block) {
    const asked = history.askedToFree(block),
        end = history.blockEnd[block];
    if (end > history.last)
        return asked ? `requested at ${history.eventName(asked)}, never completed` : 'never freed';
    if (!asked || asked === end) return history.eventName(end);
    return `requested at ${history.eventName(asked)}, completed at ${history.eventName(end)}`;
}

// A short line for the pointer.
export function blockSummary(history, block) {
    const size = formatBytes(history.blockSize[block]);
    return [
        `Block ${formatCount(block)}: ${size}`,
        `lives ${lifeOf(history, block)}`,
        shortText(history.lineOf(block), 90),
    ].concat(
        [nameIn(history, 'stream'), nameIn(history, 'pool'), nameIn(history, 'category')]
            .map((name) => name(block))
            .filter(Boolean)
            .join(' · '),
    );
}

function nameIn(history, column) {
    const names = {
        stream: history.info.streams,
        pool: history.info.pools,
        category: history.info.categories,
    }[column];
    return (block) => (names?.length ? shortText(names[history.ofBlocks(column)[block]] ?? '', 60) : '');
}

function stackList(history, block) {
    const frames = history.stackText(history.ofBlocks('stack')[block] - 1);
    if (!frames.length) return element('p', { class: 'note' }, 'No stack was recorded.');
    const copied = element('span', { role: 'status' });
    const whole = () => frames.map(({ text }) => visibleText(text)).join('\n');
    return [
        element(
            'ol',
            { class: 'stack' },
            frames.map(({ text, user }) =>
                element('li', { class: user ? 'own' : null }, shortText(text, FRAME_LENGTH)),
            ),
        ),
        element(
            'div',
            { class: 'tools' },
            button('Copy the stack', () => copyText(whole(), copied)),
            copied,
        ),
    ];
}

function blockFacts(history, block) {
    const requested = history.ofBlocks('requested')[block];
    const size = history.blockSize[block];
    const alloc = history.blockAlloc[block];
    const rounded = requested && requested !== size ? ` (${formatBytes(requested)} requested)` : '';
    const time = history.timeOf(alloc);
    return factList([
        ['Size', `${formatBytes(size)}${rounded}`],
        ['Address', formatAddress(history, history.ofBlocks('address')[block])],
        [
            'Allocated',
            alloc === 0
                ? 'before the recording'
                : `${history.eventName(alloc)}${time === null ? '' : ` at ${formatMicroseconds(time)}`}`,
        ],
        ['Freed', freeOf(history, block)],
        ['Lifetime', lifeOf(history, block)],
        ['Stream', nameIn(history, 'stream')(block)],
        ['Pool', nameIn(history, 'pool')(block)],
        ['Category', nameIn(history, 'category')(block)],
        ['Line', shortText(history.lineOf(block), 300)],
    ]);
}

export function blockDetails(app, history, block) {
    const alloc = history.blockAlloc[block],
        end = history.blockEnd[block];
    const go = (text, changes) => button(text, () => app.set(changes));
    return element(
        'section',
        { class: 'details', 'aria-label': 'Details of the block' },
        element('h3', {}, `Block ${formatCount(block)}`),
        blockFacts(history, block),
        element(
            'div',
            { class: 'tools' },
            alloc > 0 && go('State at its allocation', { view: 'state', event: alloc, block }),
            end <= history.last && go('State at its free', { view: 'state', event: end, block: null }),
            go('In the timeline', {
                view: 'timeline',
                block,
                range: rangeAround(history, block),
                height: null,
            }),
            history.ofBlocks('line')[block] > 0 &&
                go('All of this line', { line: history.lineOf(block), query: null }),
        ),
        element('h4', {}, 'Stack, innermost first'),
        stackList(history, block),
    );
}

export function rangeAround(history, block) {
    const alloc = history.blockAlloc[block],
        end = Math.min(history.blockEnd[block], history.last);
    const margin = Math.max(4, Math.ceil((end - alloc) * 0.3));
    return [Math.max(0, alloc - margin), Math.min(history.last + 1, end + margin)];
}
