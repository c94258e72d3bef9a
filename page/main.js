// Starts the page: reads the data, builds the head and the views, and shows what the address asks for.

import { App } from './app.js';
import { CompareView } from './compare_view.js';
import { FindingsView } from './findings_view.js';
import { FlameView } from './flame_view.js';
import { Header } from './header.js';
import { StateView } from './state_view.js';
import { TablesView } from './tables_view.js';
import { TimelineView } from './timeline_view.js';
import { decodeContainer } from './decode.js';
import { element, replaceChildren } from './dom.js';
import { onThemeChange, restoreTheme, switchTheme } from './theme.js';
import { preparePrint, saveImage } from './save_image.js';
import { shortText } from './format.js';

async function start(place) {
    const data = document.getElementById('gmd-data');
    const { report, columns } = await decodeContainer(data.textContent);
    data.remove(); // megabytes of text that nobody needs any more
    document.title = shortText(report.title ?? 'gmd', 200);
    const app = new App(report, columns);
    app.start(location.hash);
    buildPage(app, place);
}

function buildPage(app, place) {
    const views = [
        new FindingsView(app),
        new TimelineView(app),
        new StateView(app),
        new FlameView(app),
        new CompareView(app),
        new TablesView(app),
    ];
    const current = () => views.find(({ name }) => name === app.state.view) ?? views[0];
    const themeChanged = () => show(app.state, new Set(['view', 'history', 'theme']));
    const header = new Header(app, {
        save: (format) => saveImage(current(), app.report.title ?? 'gmd', format),
        theme: () => {
            switchTheme();
            themeChanged();
        },
    });
    const main = element('main');
    replaceChildren(place, header.root, main);
    const show = (state, changed) => {
        const view = current();
        if (main.firstChild !== view.root) main.replaceChildren(view.root);
        header.update(state, changed);
        view.update(state, changed);
    };
    app.onChange(show);
    onThemeChange(themeChanged);
    preparePrint(views, () => app.state.view);
    listenToKeys(app, header);
    show(app.state, new Set(['view', 'history', ...Object.keys(app.state)]));
    window.gmdPage = { app, views, shortText }; // for tests and for the reader's own console
}

// Keys that hold everywhere: the views by number, / to search.
function listenToKeys(app, header) {
    const order = ['findings', 'timeline', 'state', 'flame', 'compare', 'tables'];
    document.addEventListener('keydown', (event) => {
        if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
        if (/^(input|select|textarea)$/i.test(event.target.tagName)) return;
        const view = order[Number(event.key) - 1];
        if (view) app.set({ view });
        else if (event.key === '/' && header.query) {
            event.preventDefault();
            header.query.focus();
        }
    });
}

restoreTheme();
start(document.getElementById('gmd')).catch((error) => {
    replaceChildren(
        document.getElementById('gmd'),
        element(
            'p',
            { class: 'bad', role: 'alert' },
            `The page cannot show its data: ${error.message}. ` +
                'Write it again with gmd report; if the browser is older than 2023, take a newer one.',
        ),
    );
    throw error;
});
