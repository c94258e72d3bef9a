// Pages that gmd writes of what strangers made: whatever they call their files, lines and allocators shows as text.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { closePage, dataFile, openPage, pageFolder, pageOfGmd, runGmd, settle } from './browser.mjs';
import { hostileCase, hostileResult, hostileSnapshot } from './hostile_inputs.mjs';

const VIEWS = ['findings', 'timeline', 'state', 'flame', 'compare', 'tables'];
const planted = ['--allocator', process.env.GMD_TEST_PLANTED];
const plant = { GMD_PLANT: 'overlap' };
const history = dataFile('histories/resnet50_leak.pickle.gz');

// Every view, every table and the evidence of each finding: nothing runs, nothing is an element, nothing is too wide.
async function lookAtAll(path) {
    const page = await openPage(path);
    const states = await page.evaluate((views) => {
        const { tables, findings } = window.gmdPage.app.report;
        return [
            ...views.map((view) => ({ view })),
            ...tables.map(({ id }) => ({ view: 'tables', table: id })),
            ...findings.slice(0, 5).map((_, finding) => ({ view: 'timeline', finding, block: 0 })),
        ];
    }, VIEWS);
    let shown = false;
    for (const state of states) {
        await page.evaluate((changes) => window.gmdPage.app.set(changes), state);
        await settle(page);
        const seen = await page.evaluate(() => ({
            hacked: window.hacked,
            foreign: document.querySelectorAll('#gmd img, #gmd script, #gmd b').length,
            wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
            text: `${document.title} ${document.body.innerText}`,
        }));
        assert.equal(seen.hacked, undefined, JSON.stringify(state));
        shown ||= seen.text.includes('window.hacked = ');
        assert.equal(seen.foreign, 0, JSON.stringify(state));
        assert.ok(seen.wide <= 0, `${seen.wide} pixels too wide: ${JSON.stringify(state)}`);
        // eslint-disable-next-line no-control-regex
        assert.doesNotMatch(
            seen.text,
            /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u0080-\u009f\u202a-\u202e\u2066-\u2069]/,
        );
    }
    assert.ok(shown, 'no view shows the hostile text at all');
    await closePage(page);
}

for (const [name, args, environment] of [
    ['gate', ['gate', '--quick', '--only', 'cases/general/cub329', ...planted], plant],
    ['fuzz', ['fuzz', '--runs', '500', '--without', 'fault,budget', ...planted], plant],
    ['run', ['run', 'hidden_state', 'leak=true', '--quiet']],
    ['bench', ['bench', '--filter', 'pair_512B', '--seconds', '0.01']],
    ['advise', ['advise', history, '--conf', 'expandable_segments:True']],
    ['diagnose', ['diagnose', history]],
]) {
    test(`a result of ${name} with hostile texts shows them as text`, async () => {
        const result = join(pageFolder(), `hostile-${name}.json`);
        const out = ['gate', 'fuzz'].includes(name) ? ['--out', 'none'] : [];
        runGmd([...args, ...out, '-q', '--json', result], environment);
        writeFileSync(result, JSON.stringify(hostileResult(JSON.parse(readFileSync(result, 'utf8')))));
        await lookAtAll(pageOfGmd(`hostile-${name}`, (to) => ['report', result, '-o', to]));
    });
}

test('a case whose path is HTML shows as text', async () => {
    const path = hostileCase(pageFolder(), dataFile('traces/basic.gmd'));
    await lookAtAll(pageOfGmd('hostile-case', (to) => ['run', path, '--cases', 'none', '-q', '--html', to]));
});

test('a recording with hostile frames and annotations shows them as text', async () => {
    const path = hostileSnapshot(join(pageFolder(), 'hostile.pickle'));
    const html = pageOfGmd('hostile-snapshot', (to) => ['report', path, path, '-o', to]);
    await lookAtAll(html);
    const page = await openPage(html, '#view=timeline');
    const { strings } = await page.evaluate(() => window.gmdPage.app.report);
    assert.ok(strings.includes('a␀b.py'), 'nothing of a name is lost behind a NUL');
    assert.ok(strings.includes('\u202egnp.exe\u202c \u200f\u05d0\u05d1'));
    await closePage(page);
});
