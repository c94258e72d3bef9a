// Pages that gmd itself writes: a recorded job, a run with a violation, a gate and a campaign.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import {
    closePage,
    dataFile,
    openPage,
    pageFolder,
    pageOfGmd,
    settle,
    stateOf,
    withPage,
} from './browser.mjs';

const faulty = process.env.GMD_TEST_STREAM_POOL;
const defect = { GMD_DEFECT: 'rmm510' };
const job = (name) =>
    pageOfGmd(name, (path) => ['report', dataFile(`histories/${name}.pickle.gz`), '-o', path]);

// A snapshot of a program that did not record: segments, and no events.
const NO_EVENTS = `
import pickle, sys
used = dict(address=4194304, size=512, requested_size=512, state="active_allocated", frames=[])
rest = dict(address=4194816, size=2096640, state="inactive", frames=[])
segment = dict(device=0, address=4194304, total_size=2097152, allocated_size=512, active_size=512, stream=0,
               segment_type="small", blocks=[used, rest])
with open(sys.argv[1], "wb") as file:
    pickle.dump(dict(segments=[segment], device_traces=[]), file)
`;

// Each view of a page is opened: none may report an error or be empty.
async function lookAtAll(path) {
    const page = await openPage(path);
    for (const view of ['findings', 'timeline', 'state', 'flame', 'compare', 'tables']) {
        await page.evaluate((name) => window.gmdPage.app.set({ view: name }), view);
        await settle(page);
        assert.ok((await page.locator('main').innerText()).length > 10, view);
    }
    await closePage(page);
}

// Each piece of evidence leads to a view that has something to highlight or a moment to show.
async function followEvidence(page) {
    const pieces = await page.evaluate(() =>
        window.gmdPage.app.report.findings.flatMap((finding, i) =>
            (finding.evidence ?? []).map((evidence, n) => [i, n]),
        ),
    );
    for (const [finding, number] of pieces) {
        await page.evaluate(([i, n]) => window.gmdPage.app.showEvidence(i, n), [finding, number]);
        await settle(page);
        assert.equal((await stateOf(page)).finding, finding);
        assert.ok((await page.locator('.banner').isVisible()) || (await stateOf(page)).view === 'findings');
    }
    return pieces.length;
}

test('the page of resnet50_leak names the cause and shows the blocks of its line', async () => {
    await withPage(job('resnet50_leak'), '', async (page) => {
        assert.match(
            await page.locator('.finding h3').first().innerText(),
            /Gradients are kept .*train\.py:37/,
        );
        await page.locator('.evidence a').first().click();
        await settle(page);
        const highlighted = await page.evaluate(() => {
            const { app } = window.gmdPage;
            const history = app.history(),
                category = history.ofBlocks('category');
            return [...history.blockSize.keys()]
                .filter((block) => app.highlight.mask[block])
                .map((block) => history.info.categories[category[block]]);
        });
        assert.ok(highlighted.length >= 100);
        assert.deepEqual([...new Set(highlighted)], ['gradient']);
        assert.ok((await followEvidence(page)) >= 2);
    });
});

test('the page of left_free_1.2 says why a request was refused, and that more were', async () => {
    await withPage(job('left_free_1.2'), '', async (page) => {
        const first = await page.locator('.finding').first().innerText();
        assert.match(first, /Cause: limit: the device had the memory, and a limit forbade its use\./);
        assert.match(first, /GiB were free on the device\./);
        assert.match(first, /What to do: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True/);
        assert.match(await page.locator('.finding').last().innerText(), /more lines and sizes ran out/);
        await page.locator('.evidence a').first().click();
        await settle(page);
        assert.match(
            await page.locator('.state .reasons').innerText(),
            /forbade its use\.\nThe job went on\./,
        );
        assert.match(await page.locator('.state .legend').innerText(), /parameter[^]*free/);
    });
});

test('the page names the peak as gmd diagnose does', async () => {
    const text = execFileSync(process.env.GMD, ['diagnose', dataFile('histories/left_free_1.2.pickle.gz')]);
    const [, peak] = /^Peak: .* event ([\d,]*\d)/m.exec(text.toString());
    await withPage(job('left_free_1.2'), '#view=state', async (page) => {
        assert.match(await page.locator('.state .reasons').innerText(), new RegExp(`^Event ${peak}: `));
    });
});

test('where freed blocks wait for streams, the peak of findings and that of the picture are told apart', async () => {
    await withPage(job('streams_expand'), '#view=timeline', async (page) => {
        const { summary, marks, first, sizes } = await page.evaluate(() => {
            const { app } = window.gmdPage;
            const history = app.history();
            const asked = history.ofBlocks('asked');
            const sum = (blocks) => blocks.reduce((bytes, block) => bytes + history.blockSize[block], 0);
            const live = history.liveBlocks(history.peak);
            const isFreed = (block) => asked[block] && history.blockAlloc[block] + asked[block] <= history.peak;
            return {
                summary: app.report.inputs[0].summary,
                marks: history.marks.filter(({ kind }) => /peak/.test(kind)).map(({ label }) => label),
                first: app.state.event === history.marks[0].event,
                sizes: [sum(live), sum(live.filter(isFreed))].map((bytes) => (bytes / 2 ** 20).toFixed(1)),
            };
        });
        const [, peak] = /peak ([\d.]+ MiB) allocated/.exec(summary);
        assert.equal(marks[0], `peak: ${peak} allocated`);
        const [active, freed] = sizes;
        const waits = `with ${freed} MiB that is freed and waits for a stream`;
        assert.equal(marks[1], `peak of active memory: ${active} MiB, ${waits}`);
        assert.ok(first, 'the page opens at the peak that findings tell of');
        const listed = await page.locator('.moment-bar select').last().textContent();
        for (const mark of marks) assert.ok(listed.includes(`: ${mark}`), `${mark} is not in ${listed}`);
        await page.locator('.timeline .overlay').press('p');
        await settle(page);
        const sums = await page.locator('.sums').innerText();
        assert.ok(sums.startsWith(`${active} MiB active, ${waits}, `), sums);
    });
});

test('where no block waits for a stream, there is one peak', async () => {
    await withPage(job('resnet50_leak'), '#view=timeline', async (page) => {
        const marks = await page.evaluate(() =>
            window.gmdPage.app.history().marks.filter(({ kind }) => /peak/.test(kind)),
        );
        assert.equal(marks.length, 1);
        assert.match(marks[0].label, /^peak: [\d.]+ MiB allocated$/);
    });
});

test('the lists of histories show the end of each name, which tells devices apart', async () => {
    await withPage(job('two_devices_split'), '#view=compare', async (page) => {
        const lists = await page.evaluate(() =>
            ['.moment-bar select', '.compare select'].flatMap((selector) =>
                [...document.querySelectorAll(selector)]
                    .filter((select) => select.closest('label').textContent.match(/^(History|Upper|Lower)/))
                    .map((select) => {
                        const style = getComputedStyle(select);
                        const context = document.createElement('canvas').getContext('2d');
                        context.font = style.font;
                        const texts = [...select.options].map(({ text }) => text);
                        const sides = parseFloat(style.paddingLeft) + parseFloat(style.paddingRight) + 2;
                        const room = select.clientWidth - sides;
                        const wide = texts.filter((text) => context.measureText(text).width > room);
                        return { texts, wide };
                    }),
            ),
        );
        assert.equal(lists.length, 3);
        for (const { texts, wide } of lists) {
            assert.deepEqual(
                texts.map((text) => /device \d$/.exec(text)?.[0]).sort(),
                ['device 0', 'device 1'],
                texts.join(),
            );
            assert.deepEqual(wide, []);
        }
    });
});

test('out-of-memories that a job survived are not counted as findings', async () => {
    await withPage(job('left_free_1.2'), '', async (page) => {
        assert.equal(
            await page.locator('.findings h2').innerText(),
            '8 requests, each of another line or size, ran out of memory',
        );
        const input = await page.locator('.input').innerText();
        assert.match(input, /nothing else was found, 59 requests were refused .* which the job survived/);
    });
});

test('a recording without events cannot be judged, and is not called healthy', async () => {
    const path = join(pageFolder(), 'no-events.pickle');
    execFileSync('python3', ['-c', NO_EVENTS, path]);
    const html = pageOfGmd('no-events', (to) => ['report', path, '-o', to]);
    await withPage(html, '', async (page) => {
        assert.equal(await page.locator('.verdict').innerText(), 'not judged');
        assert.equal(await page.locator('.findings h2').innerText(), 'Nothing can be judged');
        assert.doesNotMatch(await page.locator('main').innerText(), /healthy/);
    });
});

test('a run that passed says how many out-of-memories it survived', async () => {
    const path = pageOfGmd('survivor', (to) => ['run', dataFile('../page/refused.gmd'), '--html', to, '-q']);
    await withPage(path, '', async (page) => {
        assert.equal(await page.locator('.verdict').innerText(), 'pass');
        assert.match(
            await page.locator('.input').innerText(),
            /0 violations, 1 request refused for lack of memory, 2 allocations tried again with the cache emptied/,
        );
    });
});

test('each of 643 refusals of limit_and_empty_cache is marked, and the state says what was refused', async () => {
    await withPage(job('limit_and_empty_cache'), '#view=state', async (page) => {
        const events = await page.evaluate(() =>
            window.gmdPage.app
                .history()
                .marks.filter(({ kind }) => kind === 'oom')
                .map(({ event }) => event),
        );
        assert.equal(events.length, 643);
        assert.match(
            await page.locator('.moment-bar select option').last().textContent(),
            /^… and \d+ more, marked in the timeline$/,
        );
        await page.evaluate((event) => window.gmdPage.app.set({ event }), events.at(-1));
        await settle(page);
        assert.match(
            await page.locator('.state .reasons').innerText(),
            /Out of memory at event .* were refused/,
        );
    });
});

test('a comparison shows how other settings hold the same job', async () => {
    const snapshot = pageOfGmd('expandable', () => [
        'replay',
        dataFile('histories/varbatch_cap6_default.pickle.gz'),
        '--conf',
        'expandable_segments:True',
        '--snapshot',
        'expandable.pickle.gz',
        '-q',
    ]).replace(/html$/, 'pickle.gz');
    const path = pageOfGmd('compared', (to) => [
        'report',
        dataFile('histories/varbatch_cap6_default.pickle.gz'),
        snapshot,
        '-o',
        to,
    ]);
    await withPage(path, '', async (page) => {
        assert.match(
            await page.locator('.comparison').innerText(),
            /most reserved 5\.96 GiB and 5\.66 GiB\.$/,
        );
        await page.getByRole('link', { name: 'Compare the two histories' }).click();
        await page.getByRole('button', { name: 'Where the upper reserved most' }).click();
        await settle(page);
        assert.match(
            await page.locator('.compare .reasons').innerText(),
            /both after request ([\d,]+) of the same/,
        );
        const [upper, lower] = await page.locator('.compare .half').allInnerTexts();
        assert.match(upper, /3\.34 GiB allocated, 5\.96 GiB reserved at event 6,741/);
        assert.match(upper, /Free: 2\.12 GiB in 27 segments without a block, 512 MiB in 39 gaps/);
        assert.match(lower, /Free: 0 B in 0 segments without a block/);
        const marks = await page.evaluate(() =>
            window.gmdPage.app
                .history()
                .marks.filter(({ kind }) => kind === 'flush')
                .map(({ label }) => label),
        );
        assert.deepEqual(marks, ['cache given back: 2.01 GiB', 'cache given back: 5.00 GiB']);
        await page.getByRole('link', { name: 'State' }).click();
        await settle(page);
        assert.match(
            await page.locator('.state .reasons').innerText(),
            /held 118 MiB: 2\.51 GiB were free there, the largest gap was 112 MiB\./,
        );
    });
});

for (const name of ['resnet50_leak', 'varbatch_cap6_default'])
    test(`every view of ${name} opens`, async () => lookAtAll(job(name)));

test('the sums of a recorded job are those of its blocks and segments', async () => {
    await withPage(job('varbatch_cap6_default'), '#view=state', async (page) => {
        const differences = await page.evaluate(() => {
            const { app, views } = window.gmdPage;
            const history = app.history();
            const known = app.report.histories[0].peak;
            return {
                peak: history.allocated[history.peak] - known.allocated,
                used:
                    views[2].segments.reduce((sum, segment) => sum + segment.used, 0) -
                    history.allocated[app.state.event],
                reserved:
                    views[2].segments.reduce((sum, segment) => sum + segment.size, 0) -
                    history.reserved[app.state.event],
            };
        });
        assert.deepEqual(differences, { peak: 0, used: 0, reserved: 0 });
    });
});

test('a run with a planted early reuse shows both parties', async () => {
    const path = pageOfGmd(
        'run',
        (to) => [
            'run',
            dataFile('../faulty/cases/rmm510.gmd'),
            '--allocator',
            faulty,
            '--cases',
            'none',
            '--html',
            to,
            '-q',
        ],
        defect,
    );
    await withPage(path, '', async (page) => {
        assert.match(await page.locator('.finding').first().innerText(), /stream_order\.reused_early/);
        await page.locator('.evidence a').first().click();
        await settle(page);
        assert.equal(await page.evaluate(() => window.gmdPage.app.highlight.count), 2);
        assert.equal((await stateOf(page)).colour, 'stream');
        assert.ok((await followEvidence(page)) >= 2);
        await page.evaluate(() => window.gmdPage.app.set({ view: 'state' }));
        await settle(page);
        assert.match(
            await page.locator('.state .reasons').innerText(),
            /gap of 32 MiB of stream 1, default pool: the block itself is of stream 2\. Until event 3 block 0 of rmm510\.gmd:4 lay there/,
        );
    });
    await lookAtAll(path);
});

// Follows the first evidence of the finding of a class: both blocks are highlighted, in the timeline and in the state.
async function seeBothParties(page, name) {
    const finding = page.locator('.finding').filter({ hasText: name }).first();
    await finding.locator('.evidence a').first().click();
    await settle(page);
    assert.equal((await stateOf(page)).view, 'timeline');
    assert.equal(await page.evaluate(() => window.gmdPage.app.highlight.count), 2);
    await page.getByRole('button', { name: /Evidence 1 of 2/ }).click();
    await settle(page);
    assert.equal((await stateOf(page)).view, 'state');
    assert.equal(await page.evaluate(() => window.gmdPage.views[2].found.count), 2);
}

// A gate or a campaign with a planted defect: its cases are written to CASES.
function pageOfSearch(name, { allocator, environment, options, cases }) {
    return pageOfGmd(
        name,
        (to) => [...options, '--allocator', allocator, '--out', cases, '--html', to, '-q'],
        environment,
    );
}

test('cases that have nothing to do with each other are not offered for comparison', async () => {
    const path = pageOfGmd('two-cases', (to) => [
        'run',
        dataFile('traces/basic.gmd'),
        dataFile('../faulty/cases/rmm510.gmd'),
        '--cases',
        'none',
        '--html',
        to,
        '-q',
    ]);
    await withPage(path, '', async (page) => {
        assert.equal(await page.evaluate(() => window.gmdPage.app.report.histories.length), 2);
        assert.equal(await page.getByRole('link', { name: /Compare/ }).count(), 0);
    });
});

test('runs of one scenario are offered for comparison', async () => {
    const path = pageOfGmd('two-runs', (to) => [
        'run',
        'hidden_state',
        'leak=true,false',
        '--html',
        to,
        '-q',
    ]);
    await withPage(path, '', async (page) => {
        assert.equal(await page.getByRole('link', { name: 'Compare the two histories' }).count(), 1);
    });
});

test('the finding of a gate leads to both parties of an early reuse', async () => {
    const path = pageOfSearch('gate', {
        allocator: faulty,
        environment: defect,
        options: ['gate', '--quick', '--only', 'cases'],
        cases: 'gate-cases',
    });
    await withPage(path, '', async (page) => seeBothParties(page, 'stream_order.reused_early'));
    await withPage(path, '#view=tables', async (page) => {
        assert.ok((await page.locator('.choices button').count()) >= 1);
        assert.ok((await page.locator('.tables tbody tr').count()) >= 1);
    });
    await lookAtAll(path);
});

test('the finding of a campaign leads to both parties of an overlap', async () => {
    const path = pageOfSearch('campaign', {
        allocator: process.env.GMD_TEST_PLANTED,
        environment: { GMD_PLANT: 'overlap' },
        options: ['fuzz', '--runs', '3000', '--without', 'fault,budget'],
        cases: 'campaign-cases',
    });
    await withPage(path, '', async (page) => {
        await seeBothParties(page, 'overlap.shared');
        assert.match(await page.locator('.reasons').innerText(), /belong to two live blocks at once/);
    });
    await lookAtAll(path);
});

test('a gate whose cases are not written says why no view shows them', async () => {
    const path = pageOfSearch('gate-without-cases', {
        allocator: faulty,
        environment: defect,
        options: ['gate', '--quick', '--only', 'cases'],
        cases: 'none',
    });
    await withPage(path, '', async (page) => {
        assert.match(
            await page.locator('.finding').first().innerText(),
            /do not show its blocks: no case was written/,
        );
        assert.equal(await page.locator('.evidence').count(), 0);
    });
    await lookAtAll(path);
});

test('the page of a benchmark leads to its figures, and does not say that nothing was found', async () => {
    const path = pageOfGmd('bench', (to) => [
        'bench',
        '--filter',
        'pair_512B',
        '--seconds',
        '0.01',
        '--quiet',
        '--html',
        to,
    ]);
    await withPage(path, '', async (page) => {
        assert.doesNotMatch(await page.locator('main').innerText(), /Nothing was found/);
        await page.getByRole('link', { name: 'See the figures' }).click();
        await settle(page);
        assert.equal((await stateOf(page)).view, 'tables');
    });
});
