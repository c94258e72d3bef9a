// Names of strangers: they show as text and do nothing.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { settle, syntheticPage, withPage } from './browser.mjs';

const VIEWS = ['findings', 'timeline', 'state', 'flame', 'compare', 'tables'];
const hostile = syntheticPage('hostile');

for (const view of VIEWS) {
    test(`hostile names in the view ${view} are text`, async () => {
        await withPage(hostile, `#view=${view}&block=60&finding=0`, async (page) => {
            assert.equal(await page.evaluate(() => window.hacked), undefined);
            assert.equal(await page.locator('#gmd img, #gmd script, #gmd b').count(), 0);
            const text = await page.locator('body').innerText();
            // eslint-disable-next-line no-control-regex
            assert.doesNotMatch(text, /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u202a-\u202e\u2066-\u2069]/);
            assert.match(text, /<\/script><script>window\.hacked = 1<\/script>/);
            const wide = await page.evaluate(
                () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
            );
            assert.ok(wide <= 0, `the page is ${wide} pixels too wide`);
        });
    });
}

const shortened = (page, text, length) =>
    page.evaluate(([name, limit]) => window.gmdPage.shortText(name, limit), [text, length]);

for (const [what, text, expected] of [
    ['a mark that turns the writing', 'evil\u202egnp.exe', 'evil‹U+202E›gnp.exe'],
    ['a NUL', 'nul\u0000after.py', 'nul‹U+0000›after.py'],
    ['a NUL that gmd read', 'nul\u2400after.py', 'nul‹U+0000›after.py'],
    ['an Arabic letter mark', 'a\u061cb', 'a‹U+061C›b'],
    ['what has no width', 'a\u200b\u00adb', 'a‹U+200B›‹U+00AD›b'],
    ['a tag', 'a\u{e0041}b', 'a‹U+E0041›b'],
    ['half of a character', 'a\ud83db', 'a‹U+D83D›b'],
])
    test(`${what} in a name is seen`, async () => {
        await withPage(hostile, '', async (page) => assert.equal(await shortened(page, text, 100), expected));
    });

test('a long name loses its middle, and no character is halved', async () => {
    await withPage(hostile, '', async (page) => {
        const name = await shortened(page, `${'😀'.repeat(1 << 18)}.py`, 100);
        assert.match(name, /^(😀)+…(😀)+\.py$/u);
    });
});

test('a copy of a stack has its names whole', async () => {
    await withPage(hostile, '#view=timeline&block=60', async (page) => {
        const [copied, whole] = await page.evaluate(() => {
            const { app } = window.gmdPage;
            const history = app.history();
            let text = '';
            document.addEventListener('copy', () => (text = document.activeElement.value), { capture: true });
            [...document.querySelectorAll('.details button')]
                .find((one) => one.textContent === 'Copy the stack')
                .click();
            const frames = history.stackText(history.ofBlocks('stack')[60] - 1);
            return [text.length, frames.reduce((sum, frame) => sum + frame.text.length, 0)];
        });
        assert.ok(copied >= whole && whole > 0, `${copied} of ${whole}`);
    });
});

test('a search for a hostile name works', async () => {
    await withPage(hostile, '#view=timeline', async (page) => {
        await page.keyboard.press('/');
        await page.keyboard.type('<img src=x');
        await page.keyboard.press('Enter');
        await settle(page);
        assert.ok((await page.evaluate(() => window.gmdPage.app.highlight.count)) > 0);
    });
});

test('the policy allows no other script', async () => {
    await withPage(hostile, '', async (page) => {
        await page.evaluate(() => {
            const script = document.createElement('script');
            script.textContent = 'window.hacked = 3';
            document.body.append(script);
        });
        assert.equal(await page.evaluate(() => window.hacked), undefined);
        assert.match(page.problems.join(), /Content Security Policy/);
        page.problems.length = 0;
    });
});

for (const [what, change] of [
    ['cut off', (data) => data.slice(0, data.length >> 1)],
    ['no base64', () => '!!!'],
    ['empty', () => ''],
    ['another format', () => 'H4sIAAAAAAAAA3P3dXFxdA8ydCwuLkktAgBhwTaWDAAAAA=='],
]) {
    test(`data that are ${what} are an error in words`, async () => {
        const path = `${hostile}.${what.replace(' ', '-')}.html`;
        writeFileSync(
            path,
            readFileSync(hostile, 'utf8').replace(
                /(<script id="gmd-data"[^>]*>)([^<]*)/,
                (_, tag, data) => tag + change(data),
            ),
        );
        await withPage(path, '', async (page) => {
            assert.match(await page.locator('[role=alert]').innerText(), /cannot show its data: .+/);
            page.problems.length = 0; // the error is also in the console
        });
    });
}
