// The other views: findings, state, flame graph, comparison, tables; links and saving.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { settle, stateOf, syntheticPage, withPage } from './browser.mjs';

const small = syntheticPage('small');

test('a finding leads to its evidence in each view', async () => {
    await withPage(small, '', async (page) => {
        assert.equal(await page.locator('.finding').count(), 3);
        await page.getByRole('link', { name: "The line's blocks" }).click();
        await settle(page);
        assert.equal((await stateOf(page)).view, 'timeline');
        assert.ok((await page.evaluate(() => window.gmdPage.app.highlight.count)) > 5);
        await page.getByRole('button', { name: /Evidence 1 of 3/ }).click();
        await settle(page);
        assert.equal((await stateOf(page)).view, 'flame');
        await page.getByRole('button', { name: /Evidence 2 of 3/ }).click();
        await settle(page);
        assert.deepEqual((await stateOf(page)).span, [300, 600]);
    });
});

test('a violation highlights both blocks', async () => {
    await withPage(small, '', async (page) => {
        await page.getByRole('link', { name: 'Both blocks' }).click();
        await settle(page);
        const { count } = await page.evaluate(() => ({ count: window.gmdPage.app.highlight.count }));
        assert.equal(count, 2);
        assert.equal((await stateOf(page)).event, 700);
    });
});

test('the link of a piece of evidence opens what a click on it shows', async () => {
    await withPage(small, '', async (page) => {
        const href = await page.getByRole('link', { name: 'The state then' }).getAttribute('href');
        await withPage(small, href, async (other) => {
            const state = await stateOf(other);
            assert.deepEqual([state.view, state.event, state.block, state.finding], ['state', 700, 100, 1]);
        });
    });
});

test('the state shows every live block in its segment and steps with keys', async () => {
    await withPage(small, '#view=state&event=700', async (page) => {
        const sums = await page.evaluate(() => {
            const { segments, history } = window.gmdPage.views[2];
            const pieces = segments.flatMap((segment) => segment.pieces);
            return {
                used: segments.reduce((sum, segment) => sum + segment.used, 0),
                allocated: history.allocated[history.eventOf(700)],
                all: pieces.reduce((sum, piece) => sum + piece.size, 0),
                reserved: history.reserved[history.eventOf(700)],
            };
        });
        assert.equal(sums.used, sums.allocated);
        assert.equal(sums.all, sums.reserved);
        await page.locator('.state .segments canvas').press('n');
        await settle(page);
        const text = await page.locator('.state .reasons').innerText();
        assert.match(text, /allocation of block/);
        assert.match(text, /free gap/);
    });
});

test('a click on a segment says why it cannot go back', async () => {
    await withPage(small, '#view=state&event=700', async (page) => {
        await page.locator('.state .segments canvas').click({ position: { x: 200, y: 33 } });
        await settle(page);
        assert.match(
            await page.locator('.state .side').innerText(),
            /cannot go back to the device while \d+ blocks?/,
        );
    });
});

test('the moment of an OOM explains it', async () => {
    await withPage(small, '', async (page) => {
        await page.getByRole('link', { name: 'The moment of the OOM' }).click();
        await settle(page);
        assert.match(
            await page.locator('.state .reasons').innerText(),
            /512 MiB were refused[\s\S]*free gaps/,
        );
    });
});

test('an OOM like an earlier one is marked, and names its size and the first', async () => {
    await withPage(small, '#view=state', async (page) => {
        const [first, second] = await page.evaluate(() =>
            window.gmdPage.app
                .history()
                .marks.filter(({ kind }) => kind === 'oom')
                .map(({ event }) => event),
        );
        assert.equal(second, first + 20);
        await page.evaluate((event) => window.gmdPage.app.set({ event }), second);
        await settle(page);
        const text = await page.locator('.state .reasons').innerText();
        assert.match(text, /512 MiB were refused\./);
        assert.match(text, new RegExp(`was at event ${(first - 1).toLocaleString('en-US')};`));
    });
});

test('the flame graph sums to what is allocated, zooms and moves with keys', async () => {
    await withPage(small, '#view=flame&event=700', async (page) => {
        const [sum, allocated] = await page.evaluate(() => [
            window.gmdPage.views[3].tree.bytes[0],
            window.gmdPage.app.history().allocated[window.gmdPage.app.history().eventOf(700)],
        ]);
        assert.equal(sum, allocated);
        const canvas = page.locator('.flame .segments canvas');
        await canvas.press('ArrowDown');
        await canvas.press('ArrowDown');
        await canvas.press('Enter');
        assert.match(await page.locator('.flame .reasons').innerText(), /train\.py:\d+/);
        await page.locator('.flame select').first().selectOption('line');
        await settle(page);
        assert.equal(await page.evaluate(() => window.gmdPage.views[3].tree.bytes[0]), allocated);
    });
});

test('the flame graph of a difference is that of the sums', async () => {
    await withPage(small, '#view=flame&event=700&from=10&fromHistory=0', async (page) => {
        const [bytes, expected] = await page.evaluate(() => {
            const history = window.gmdPage.app.history();
            const [now, before] = [700, 10].map((number) => history.allocated[history.eventOf(number)]);
            return [window.gmdPage.views[3].tree.bytes, [now, before]];
        });
        assert.deepEqual(bytes, expected);
    });
});

test('two histories are compared on one scale, with the difference by line', async () => {
    await withPage(small, '#view=compare', async (page) => {
        const [upper, lower] = await page.evaluate(() => {
            const { upper, lower } = window.gmdPage.views[4];
            return [upper.chart.view.top, lower.chart.view.top];
        });
        assert.equal(upper, lower);
        assert.match(await page.locator('.compare .moment').first().innerText(), /model\.py:31\s+−/);
    });
});

test('the moments that are compared are in one iteration, and the view says so', async () => {
    await withPage(small, '#view=compare', async (page) => {
        await page.getByRole('button', { name: 'Where the upper reserved most' }).click();
        await settle(page);
        const [upper, lower] = await page.evaluate(() => {
            const { app, views } = window.gmdPage;
            const at = ({ chart }) =>
                chart.history.info.iterations.findLastIndex((start) => start <= chart.event);
            return [at(views[4].upper), at(views[4].lower), app.state];
        });
        assert.equal(upper, lower);
        assert.match(
            await page.locator('.compare .reasons').innerText(),
            new RegExp(`both in iteration ${upper + 1}, after as many requests`),
        );
    });
});

test('moments that do not correspond are said to be so', async () => {
    await withPage(small, '#view=compare&event=700&from=10&fromHistory=1', async (page) => {
        assert.match(
            await page.locator('.compare .reasons').innerText(),
            /upper event 700, lower event 10; these moments do not correspond/,
        );
        await page.getByRole('button', { name: 'Align lower to upper' }).click();
        await settle(page);
        assert.match(
            await page.locator('.compare .reasons').innerText(),
            /upper event 700, .* both in iteration/,
        );
    });
});

test('the list of histories counts the events that were recorded', async () => {
    await withPage(small, '#view=compare', async (page) => {
        const last = await page.evaluate(() => window.gmdPage.app.history(1).last);
        const row = page.locator('.compare tbody tr', { hasText: 'synthetic, fewer layers' }).last();
        assert.equal(await row.locator('td').nth(2).innerText(), last.toLocaleString('en-US'));
    });
});

test('the zoom of both compared timelines is in the address, and opens again', async () => {
    await withPage(small, '#view=compare', async (page) => {
        const seen = (one) =>
            one.evaluate(() => {
                const { upper, lower } = window.gmdPage.views[4];
                const round = ({ view }) => Object.values(view).map(Math.round);
                return [round(upper.chart), round(lower.chart)];
            });
        const charts = page.locator('.compare .overlay');
        await charts.first().press('w');
        await charts.last().press('w');
        await charts.last().press('w');
        await charts.last().press('Shift+W');
        await charts.last().press('PageUp');
        await settle(page);
        const [upper, lower] = await seen(page);
        assert.ok(upper[1] - upper[0] > lower[1] - lower[0], 'each has its own events');
        assert.deepEqual(upper.slice(2), lower.slice(2), 'both have one scale of memory');
        await page.getByRole('button', { name: 'Copy link' }).click();
        await withPage(small, await page.evaluate(() => location.hash), async (other) =>
            assert.deepEqual(await seen(other), [upper, lower]),
        );
    });
});

test('tables sort, filter and copy', async () => {
    await withPage(small, '#view=tables', async (page) => {
        const first = () => page.locator('.tables tbody tr').first().innerText();
        await page.getByRole('columnheader', { name: 'Peak' }).getByRole('button').click();
        assert.match(await first(), /3\.90 MiB/);
        await page.locator('.tables input[type=search]').fill('scenario_44');
        assert.equal(await page.locator('.tables tbody tr').count(), 11);
        const tsv = await page.evaluate(() => {
            let copied = '';
            document.addEventListener(
                'copy',
                () => {
                    copied = document.activeElement.value;
                },
                { capture: true, once: true },
            );
            document.querySelector('.tables .tools button').click();
            return copied;
        });
        assert.equal(tsv.split('\n').length, 12);
        assert.equal(tsv.split('\n')[0], 'Scenario\tPeak\tRatio');
    });
});

// Presses Tab until the focus is on what SELECTOR names.
async function tabTo(page, selector) {
    for (let i = 0; i < 80; i++) {
        await page.keyboard.press('Tab');
        if (await page.evaluate((wanted) => document.activeElement.matches(wanted), selector)) return;
    }
    assert.fail(`Tab does not reach ${selector}`);
}

for (const [number, selector, key, has] of [
    ['1', '.evidence a', 'Enter', (state) => state.finding === 0],
    ['2', '.timeline .overlay', 'Shift+W', (state) => state.height !== null],
    ['2', '.timeline .overlay', 'ArrowUp', (state) => state.block !== null],
    ['2', '.timeline td .link', 'Enter', (state) => Boolean(state.line)],
    ['3', '.state canvas', 'n', (state, before) => state.event > before.event],
    ['3', '.state td .link', 'Enter', () => true],
    ['4', '.flame .segments canvas', 'ArrowDown', () => true],
    ['5', '.compare .half:nth-of-type(2) .overlay', 'ArrowRight', (state) => state.from > 0],
    ['5', '.compare .overlay', 'w', (state) => state.range !== null],
    ['6', '.choices button:last-child', 'Enter', (state) => Boolean(state.table)],
    ['6', '.tables th button', 'Enter', () => true],
])
    test(`keys alone: view ${number}, ${selector}, ${key}`, async () => {
        await withPage(small, '', async (page) => {
            await page.keyboard.press(number);
            await settle(page);
            const before = await stateOf(page);
            await tabTo(page, selector);
            await page.keyboard.press(key);
            await settle(page);
            assert.ok(has(await stateOf(page), before), JSON.stringify(await stateOf(page)));
        });
    });

test('an event has one number: in the box, in sentences, in lists and in the address', async () => {
    await withPage(small, '#event=700', async (page) => {
        assert.equal(await page.locator('.moment-bar input[type=number]').inputValue(), '700');
        assert.match(await page.locator('.state .reasons').innerText(), /^Event 700: /);
        assert.match(await page.locator('.state caption').innerText(), /at event 700$/);
        assert.match(await page.locator('.moment-bar .range').innerText(), /^of 0 to [\d,]+$/);
        await page.locator('.state .segments canvas').press('ArrowRight');
        await page.waitForFunction(() => /event=701/.test(location.hash));
        assert.match(await page.locator('.state .reasons').innerText(), /^Event 701: /);
    });
});

test('the state before the first event has no number', async () => {
    await withPage(small, '#event=start', async (page) => {
        assert.equal((await stateOf(page)).event, 0);
        assert.equal(await page.locator('.moment-bar input[type=number]').inputValue(), '');
        await page.locator('.moment-bar input[type=number]').fill('0');
        await page.keyboard.press('Enter');
        await settle(page);
        assert.equal((await stateOf(page)).event, 1);
        assert.match(await page.locator('.state .reasons').innerText(), /^Event 0: /);
    });
});

test('the address follows the state, and opens it again', async () => {
    await withPage(small, '#view=timeline', async (page) => {
        await page.locator('.timeline .overlay').press('p');
        await page.locator('.timeline select').selectOption('line');
        await page.locator('.timeline .overlay').press('w');
        await page.waitForFunction(() => /colour=line/.test(location.hash) && /range=/.test(location.hash));
        const before = await stateOf(page);
        await withPage(small, await page.evaluate(() => location.hash), async (other) => {
            const after = await stateOf(other);
            for (const name of ['view', 'event', 'colour', 'range'])
                assert.deepEqual(after[name], before[name], name);
        });
    });
});

test('back leads through the views and pieces of evidence that were shown, and forward again', async () => {
    await withPage(small, '', async (page) => {
        const view = async () => {
            await settle(page);
            return (await stateOf(page)).view;
        };
        await page.getByRole('link', { name: "The line's blocks" }).click();
        await page.getByRole('link', { name: 'State', exact: true }).click();
        await settle(page);
        await page.locator('.state .segments canvas').press('Home'); // a small movement is no step
        await settle(page);
        await page.getByRole('link', { name: 'Flame graph' }).click();
        await page.goBack();
        assert.equal(await view(), 'state');
        assert.equal((await stateOf(page)).event, 0);
        await page.goBack();
        assert.equal(await view(), 'timeline');
        assert.equal((await stateOf(page)).finding, 0);
        await page.goBack();
        assert.equal(await view(), 'findings');
        await page.goForward();
        assert.equal(await view(), 'timeline');
    });
});

for (const [fragment, view] of [
    ['#event=700', 'state'],
    ['#block=100', 'timeline'],
    ['#event=700&range=600-800', 'timeline'],
    ['#history=1', 'findings'],
])
    test(`a link that names no view opens where its moment is seen: ${fragment}`, async () => {
        await withPage(small, fragment, async (page) => {
            const state = await stateOf(page);
            assert.equal(state.view, view);
            if (fragment.includes('event')) assert.equal(state.event, 701); // the first has the number 0
        });
    });

for (const fragment of [
    '#view=nothing',
    '#view=state&event=99999999&history=7',
    '#view=timeline&range=9-3&block=1e9&span=x',
    '#%%%',
    '#view=flame&from=5&fromHistory=9',
    '#view=timeline&finding=99&evidence=5',
    '#__proto__=1&constructor=2',
    '#view=compare&fromHistory=99',
    '#view=compare&fromRange=9-3&range=x&height=7-7',
    '#view=timeline&stack=4000000',
]) {
    test(`a damaged address shows a page: ${fragment}`, async () => {
        await withPage(small, fragment, async (page) => {
            assert.ok((await page.locator('main').innerText()).length > 50);
        });
    });
}

for (const [view, format] of [
    ['timeline', 'SVG'],
    ['timeline', 'PNG'],
    ['state', 'SVG'],
    ['flame', 'SVG'],
    ['flame', 'PNG'],
    ['compare', 'SVG'],
]) {
    test(`${view} is saved as ${format}`, async () => {
        await withPage(small, `#view=${view}`, async (page) => {
            const waiting = page.waitForEvent('download');
            await page.getByRole('button', { name: `Save ${format}` }).click();
            const saved = await waiting;
            assert.match(
                saved.suggestedFilename(),
                new RegExp(`^train.py-on-gpu-0-${view}\\.${format.toLowerCase()}$`),
            );
            const bytes = readFileSync(await saved.path());
            if (format === 'PNG') assert.equal(bytes.toString('latin1', 1, 4), 'PNG');
            else assert.match(bytes.toString('utf8'), /^<svg [\s\S]*(<path|<rect)[\s\S]*<\/svg>$/);
        });
    });
}

for (const [view, title, scale, legend] of [
    [
        'timeline',
        /synthetic, 12|synthetic, \d+ iterations/,
        /from the start to event [\d,]+ of [\d,]+ events, memory from 0 B to/,
        'activation',
    ],
    ['state', /synthetic, \d+ iterations/, /a whole row is [\d.]+ MiB/, 'free'],
    ['flame', /event [\d,]+ of synthetic/, /The whole width: all: [\d.]+ MiB/, 'frames of your own'],
    ['compare', /Comparison/, /Lower: Shown: from the start/, 'reserved, not allocated'],
])
    test(`a saved picture of ${view} has its title, its scale and its legend`, async () => {
        await withPage(small, `#view=${view}`, async (page) => {
            const waiting = page.waitForEvent('download');
            await page.getByRole('button', { name: 'Save SVG' }).click();
            const svg = readFileSync(await (await waiting).path(), 'utf8');
            const texts = [...svg.matchAll(/<text [^>]*>([^<]*)</g)].map(([, text]) => text);
            assert.match(texts[0], /^train\.py on gpu 0 · ./);
            assert.match(texts[0], title);
            assert.match(texts.join(' '), scale);
            assert.ok(texts.includes(legend), texts.slice(-8).join(' | '));
        });
    });

test('paper shows a picture of the timeline', async () => {
    await withPage(small, '#view=timeline', async (page) => {
        const pdf = await page.pdf();
        assert.ok(pdf.length > 20000);
        assert.equal(await page.locator('img.printed').count(), 0); // gone afterwards
    });
});

test('the switch of light and dark changes the ground', async () => {
    await withPage(small, '#view=timeline', async (page) => {
        const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
        const light = await ground();
        await page.getByRole('button', { name: 'Light / dark' }).click();
        assert.notEqual(await ground(), light);
    });
});
