// The view "Findings": what gmd found, in sentences, each with links to where it is seen.

import { button, copyText, element, replaceChildren } from './dom.js';
import { formatBytes, plural, shortText } from './format.js';

const TEXT = 4000; // characters of one sentence, which may quote a name of a megabyte
const TITLE = 600;
const KIND_WORDS = { diagnosis: 'Diagnosis', violation: 'Violation', oom: 'Out of memory', note: 'Note' };

export class FindingsView {
    constructor(app) {
        this.app = app;
        this.name = 'findings';
        this.root = element('div', { class: 'view findings' });
    }

    update(state, changed) {
        if (!changed.has('view')) return;
        const { findings, inputs } = this.app.report;
        replaceChildren(
            this.root,
            element(
                'section',
                { class: 'inputs', 'aria-label': 'Inputs' },
                inputs.map((input) => this.input(input)),
            ),
            this.comparison(),
            this.heading(),
            findings.map((finding, i) => this.finding(finding, i)),
        );
    }

    // Where nothing was looked for, as by a benchmark, that nothing was found says nothing.
    heading() {
        const { findings, inputs } = this.app.report;
        if (findings.length) return element('h2', {}, this.counts(findings).join('; '));
        if (inputs.every(({ verdict }) => verdict === 'not judged'))
            return element('h2', {}, 'Nothing can be judged');
        if (inputs.some(({ kind }) => ['advice', 'bench', 'diff'].includes(kind)))
            return element('p', {}, this.linkToView('tables', 'See the figures'));
        return element('h2', {}, 'Nothing was found');
    }

    // A refused request is a finding only where it cost the job something: they are counted by themselves.
    counts(findings) {
        const ooms = findings.filter(({ kind }) => kind === 'oom').length;
        const others = findings.filter(({ kind }) => kind !== 'oom' && kind !== 'note').length;
        return [
            others > 0 && plural(others, 'finding'),
            ooms > 0 && `${plural(ooms, 'request')}, each of another line or size, ran out of memory`,
            others + ooms === 0 && plural(findings.length, 'note'),
        ].filter(Boolean);
    }

    linkToView(view, text) {
        const onclick = (event) => {
            event.preventDefault();
            this.app.set({ view });
        };
        return element('a', { href: `#view=${view}`, onclick }, text);
    }

    // Two histories are there to be compared, also where neither has a finding.
    comparison() {
        const { histories } = this.app.report;
        if (histories.length !== 2 || !this.app.isComparable(0, 1)) return null;
        const [one, other] = histories.map(({ peak }) => peak ?? {});
        const figure = (name) => `${formatBytes(one[name] ?? 0)} and ${formatBytes(other[name] ?? 0)}`;
        return element(
            'p',
            { class: 'comparison' },
            this.linkToView('compare', 'Compare the two histories'),
            `: most allocated ${figure('allocated')}, most reserved ${figure('reserved')}.`,
        );
    }

    input(input) {
        const bad = /fail|error|violation|unhealthy|out of memory$/.test(input.verdict ?? '');
        const survived = /survived|not judged/.test(input.verdict ?? '');
        return element(
            'p',
            { class: 'input' },
            element(
                'span',
                { class: `verdict${bad ? ' bad' : survived ? ' survived' : ''}` },
                shortText(input.verdict ?? input.kind, 40),
            ),
            element('strong', {}, shortText(input.name, 120)),
            element('span', { class: 'soft' }, ` ${shortText(input.kind, 30)} `),
            element('span', {}, shortText(input.summary ?? '', TEXT)),
        );
    }

    finding(finding, i) {
        const input = this.app.report.inputs[finding.input];
        const several = this.app.report.inputs.length > 1 && input;
        return element(
            'article',
            { class: `finding ${KIND_WORDS[finding.kind] ? finding.kind : ''}`, id: `finding-${i}` },
            element('h3', {}, shortText(finding.title, TITLE)),
            element(
                'p',
                { class: 'soft' },
                [
                    KIND_WORDS[finding.kind] ?? finding.kind,
                    finding.class && shortText(finding.class, 80),
                    Number.isFinite(finding.bytes) && formatBytes(finding.bytes),
                    finding.bytes_per_iteration > 0 &&
                        `${formatBytes(finding.bytes_per_iteration)} an iteration`,
                    several && shortText(input.name, 80),
                ]
                    .filter(Boolean)
                    .join(' · '),
            ),
            (finding.detail ?? []).map((sentence) => element('p', {}, shortText(sentence, TEXT))),
            finding.fix &&
                element(
                    'p',
                    { class: 'fix' },
                    element('strong', {}, 'What to do: '),
                    shortText(finding.fix, TEXT),
                ),
            this.evidence(finding, i),
            finding.replay &&
                element('p', {}, 'To reproduce it: ', element('code', {}, shortText(finding.replay, TEXT))),
            finding.case && caseText(finding.case),
        );
    }

    evidence(finding, i) {
        if (!finding.evidence?.length) return null;
        return element(
            'ul',
            { class: 'evidence' },
            finding.evidence.map((evidence, n) => {
                const link = element(
                    'a',
                    {
                        href: this.linkTo(evidence, i, n),
                        onclick: (event) => {
                            if (event.ctrlKey || event.metaKey) return;
                            event.preventDefault();
                            this.app.showEvidence(i, n);
                        },
                    },
                    shortText(evidence.label || `Show in the ${evidence.view}`, 200),
                );
                return element('li', {}, link);
            }),
        );
    }

    linkTo(evidence, finding, number) {
        return this.app.linkOf({
            view: evidence.view,
            history: evidence.history,
            event: evidence.event,
            finding,
            evidence: number,
            line: evidence.line,
            stack: evidence.stack,
            span: evidence.span,
            range: evidence.span,
            block: evidence.blocks?.length === 1 ? evidence.blocks[0] : null,
        });
    }
}

function caseText(text) {
    const copied = element('span', { role: 'status' });
    return element(
        'details',
        {},
        element('summary', {}, 'The case (gmd run replays it)'),
        element(
            'div',
            { class: 'tools' },
            button('Copy the case', () => copyText(text, copied)),
            copied,
        ),
        element('pre', { tabindex: '0' }, shortLines(text)),
    );
}

function shortLines(text) {
    return text
        .split('\n')
        .map((line) => shortText(line, 500))
        .join('\n');
}
