// The view "Tables": what gmd measured and checked, one table at a time.

import { DataTable } from './data_table.js';
import { button, element, replaceChildren } from './dom.js';
import { plural, shortText } from './format.js';

export class TablesView {
    constructor(app) {
        this.app = app;
        this.name = 'tables';
        this.list = element('nav', { class: 'choices', 'aria-label': 'Tables' });
        this.place = element('div', { class: 'moment' });
        this.root = element('div', { class: 'view tables' }, this.list, this.place);
    }

    update(state, changed) {
        const { tables } = this.app.report;
        const at = Math.max(
            0,
            tables.findIndex((table) => table.id === state.table),
        );
        replaceChildren(
            this.list,
            tables.map((table, i) =>
                button(
                    `${shortText(table.title, 80)} (${plural(table.rows.length, 'row')})`,
                    () => this.app.set({ table: table.id, filter: null }),
                    { 'aria-pressed': String(i === at) },
                ),
            ),
        );
        if (!tables.length)
            replaceChildren(this.place, element('p', { class: 'note' }, 'These inputs have no tables.'));
        else if (this.shown !== tables[at] || changed.has('view')) this.show(tables[at], state);
    }

    show(table, state) {
        this.shown = table;
        const grid = new DataTable(table, {
            onfilter: (filter) => this.app.set({ filter: filter || null, table: table.id }),
        });
        if (state.filter) grid.setFilter(state.filter);
        replaceChildren(this.place, grid.node);
    }
}
