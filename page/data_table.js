// A table that sorts by a click on its head, filters by text and copies itself as tab-separated values.

import { button, copyText, element, replaceChildren } from './dom.js';
import { CELL_LENGTH, formatCount, formatValue, plural, shortText, visibleText } from './format.js';

const SHOWN = 200; // rows; more come on request, a browser is slow with ten thousand

export class DataTable {
    // TABLE: { title, columns: [{ name, unit, align }], rows: [[...]] }; OPTIONS: { onrow(row), tools: bool, shown }
    constructor(table, options) {
        this.table = table;
        this.options = options ?? {};
        this.shown = this.options.shown ?? SHOWN;
        this.sorted = null; // { column, down }
        this.needle = '';
        this.node = element('section', { class: 'data-table' });
        this.head = element('thead');
        this.body = element('tbody');
        this.note = element('p', { class: 'note', role: 'status' });
        this.more = button(
            'Show more',
            () => {
                this.shown += SHOWN * 5;
                this.draw();
            },
            { class: 'more' },
        );
        this.build();
        this.draw();
    }

    build() {
        const title = shortText(this.table.title);
        const caption = element('caption', {}, title);
        const grid = element('table', {}, caption, this.head, this.body);
        const scroll = element(
            'div',
            { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': title },
            grid,
        );
        if (this.options.tools !== false) this.node.append(this.tools());
        this.node.append(scroll, this.note, this.more);
    }

    tools() {
        this.filter = element('input', {
            type: 'search',
            placeholder: 'Filter rows',
            'aria-label': `Filter ${shortText(this.table.title)}`,
            oninput: () => this.setFilter(this.filter.value),
        });
        const copied = element('span', { role: 'status' });
        return element(
            'div',
            { class: 'tools' },
            this.filter,
            button('Copy as TSV', () => copyText(this.toTsv(), copied)),
            copied,
        );
    }

    setFilter(text) {
        this.needle = text.toLowerCase();
        if (this.filter && this.filter.value !== text) this.filter.value = text;
        this.options.onfilter?.(text);
        this.draw();
    }

    setRows(rows) {
        this.table = { ...this.table, rows };
        this.draw();
    }

    rows() {
        let { rows } = this.table;
        if (this.needle)
            rows = rows.filter((row) =>
                this.texts(row).some((text) => text.toLowerCase().includes(this.needle)),
            );
        if (!this.sorted) return rows;
        const { column, down } = this.sorted;
        return [...rows].sort((a, b) => compareValues(a[column], b[column]) * (down ? -1 : 1));
    }

    texts(row) {
        return this.table.columns.map(({ unit }, i) => formatValue(row[i], unit));
    }

    draw() {
        const rows = this.rows();
        const { columns } = this.table;
        replaceChildren(
            this.head,
            element(
                'tr',
                {},
                columns.map((column, i) => this.headCell(column, i)),
            ),
        );
        replaceChildren(
            this.body,
            rows.slice(0, this.shown).map((row) => this.rowOf(row)),
        );
        this.note.textContent = [this.countSentence(rows.length), this.cutSentence(rows)].join(' ').trim();
        this.more.hidden = rows.length <= this.shown;
    }

    countSentence(found) {
        const all = this.table.rows.length;
        if (found > this.shown) return `${formatCount(this.shown)} of ${plural(found, 'row')} shown.`;
        if (all === 0) return 'Nothing to show.';
        return found < all ? `${formatCount(found)} of ${plural(all, 'row')}.` : '';
    }

    cutSentence(rows) {
        const isCut = (value) => typeof value === 'string' && value.length > CELL_LENGTH;
        return rows.slice(0, this.shown).some((row) => row.some(isCut))
            ? 'Long texts are shortened here; a copy has them whole.'
            : '';
    }

    headCell(column, i) {
        const order = this.sorted?.column === i ? (this.sorted.down ? 'descending' : 'ascending') : 'none';
        const sign = { descending: ' ↓', ascending: ' ↑', none: '' }[order];
        return element(
            'th',
            { scope: 'col', class: isNumeric(column) ? 'number' : null, 'aria-sort': order },
            button(shortText(column.name, 80) + sign, () => this.sortBy(i)),
        );
    }

    // Numbers come largest first, texts from A.
    sortBy(column) {
        const first = isNumeric(this.table.columns[column]);
        this.sorted =
            this.sorted?.column === column ? { column, down: !this.sorted.down } : { column, down: first };
        this.draw();
        this.head.querySelectorAll('button')[column].focus();
    }

    rowOf(row) {
        const cells = this.texts(row).map((text, i) => {
            const column = this.table.columns[i];
            const shown =
                i === 0 && this.options.onrow
                    ? button(text, () => this.options.onrow(row), { class: 'link' })
                    : text;
            return element('td', { class: isNumeric(column) ? 'number' : null }, shown);
        });
        return element('tr', {}, cells);
    }

    // Exact values, not the rounded ones that are shown; no value can break a row.
    toTsv() {
        const clean = (value) => visibleText(String(value ?? '').replace(/[\t\n\r]/g, ' '));
        const lines = [
            this.table.columns.map((column) => clean(column.name)),
            ...this.rows().map((row) => row.map(clean)),
        ];
        return lines.map((cells) => cells.join('\t')).join('\n');
    }
}

function isNumeric(column) {
    return column.align ? column.align === 'right' : column.unit && column.unit !== 'text';
}

function compareValues(a, b) {
    if (typeof a === 'number' && typeof b === 'number') return a - b;
    if (a === null || a === undefined) return -1;
    if (b === null || b === undefined) return 1;
    return String(a).localeCompare(String(b), 'en', { numeric: true });
}
