/** The page of the factory: a form that makes a schematic, and what there is to download for one. It needs no script. */
import type { OfferedExtension } from '../extensions.ts'
import type { Schematic } from '../schematic.ts'
import { type Html, html } from './html.ts'

/** A file that is offered. */
export interface Offer {
  /** Its name in the API. */
  readonly name: string
  readonly purpose: string
}

/** What the page shows. */
export interface PageContent {
  /** The versions that images can be made of, the newest first. */
  readonly versions: readonly string[]
  readonly version?: string | undefined
  /** The architectures of these versions. */
  readonly architectures: readonly string[]
  readonly arch?: string | undefined
  /** What was typed as kernel arguments, one each line. */
  readonly argumentsText: string
  /** The extensions that can be chosen, and the names of those that were. */
  readonly extensions: readonly OfferedExtension[]
  readonly chosen: readonly string[]
  readonly error?: string | undefined
  readonly result?: Result | undefined
}

/** A schematic of a version. */
export interface Result {
  readonly schematic: Schematic
  readonly version: string
  /** The platform and the architecture of network boot, as in `metal-amd64`. */
  readonly platform: string
  readonly offers: readonly Offer[]
  /** What is stated about each file: the ending of its name, and what people call it. */
  readonly statements: readonly (readonly [ending: string, label: string])[]
  /** Where clients reach the factory, without a path at its end. */
  readonly origin: string
}

/** The whole page. */
export const pageOf = ({ error, result, ...chosen }: PageContent): string =>
  html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Ichor image factory</title>
<link rel="stylesheet" href="/page/style.css">
<link rel="icon" href="data:,">
<script type="module" src="/page/script.js"></script>
</head>
<body>
<header>
<h1>Ichor image factory</h1>
<p>Images of a release with your kernel arguments and extensions, for the first boot of a machine and for its upgrades.</p>
</header>
<main>
${error === undefined ? undefined : html`<p class="error" role="alert">${error}</p>`}
${chosen.versions.length === 0 ? html`<p>No release is held here yet. Build one with <code>./mkimage.sh</code>.</p>` : form(chosen)}
${result && resultOf(result)}
</main>
</body>
</html>
`.text

const options = (values: readonly string[], selected: string | undefined): Html[] =>
  values.map((each) => (each === selected ? html`<option selected>${each}</option>` : html`<option>${each}</option>`))

const form = ({
  versions,
  version,
  architectures,
  arch,
  argumentsText,
  extensions,
  chosen,
}: Omit<PageContent, 'error' | 'result'>) => html`<form method="post" action="/page/schematic">
<label for="version">Version</label>
<select id="version" name="version">
${options(versions, version)}
</select>
<label for="arch">Architecture</label>
<select id="arch" name="arch">
${options(architectures, arch)}
</select>
<label for="arguments">Kernel arguments</label>
<p class="hint" id="arguments-hint">One each line, such as <code>net.ifnames=0</code>. <code>-name</code> removes an argument of the release. Leave it empty for the release as it is.</p>
<textarea id="arguments" name="arguments" aria-describedby="arguments-hint" spellcheck="false" autocapitalize="off">
${argumentsText}</textarea>
${extensions.length > 0 ? choices(extensions, chosen) : undefined}
<div><button class="main">Show images</button></div>
</form>`

const choices = (extensions: readonly OfferedExtension[], chosen: readonly string[]) => html`<fieldset>
<legend>System extensions</legend>
${extensions.map(({ metadata: { name, version, description } }) => {
  const box = chosen.includes(name)
    ? html`<input type="checkbox" name="extension" value="${name}" checked>`
    : html`<input type="checkbox" name="extension" value="${name}">`
  return html`<label>${box} <strong>${name}</strong> ${version}${description === '' ? '' : `: ${description}`}</label>
`
})}</fieldset>`

function resultOf({ schematic, version, platform, offers, statements, origin }: Result): Html {
  const image = `${new URL(origin).host}/installer/${schematic.id}:${version}`
  const base = `/image/${schematic.id}/${version}`
  const about = statements.length > 0
  const links = (name: string) => statements.map(([ending, label]) => html`<a href="${base}/${name}.${ending}">${label}</a> `)
  return html`<section aria-labelledby="images">
<h2 id="images">${version} for ${platform}</h2>
<p>Schematic <a href="/schematics/${schematic.id}"><code>${schematic.id.slice(0, 12)}</code></a>:</p>
<pre>${schematic.yaml}</pre>
<table>
<thead><tr><th scope="col">File</th><th scope="col">For</th><th scope="col">Checksum</th>${about ? html`<th scope="col">About it</th>` : undefined}</tr></thead>
<tbody>
${offers.map(
  ({ name, purpose }) => html`<tr><td><a href="${base}/${name}" download>${name}</a></td><td>${purpose}</td>
<td><a href="${base}/${name}.sha256">SHA-256</a> <button type="button" data-url="${base}/${name}" hidden aria-label="Build ${name}">Build and check</button><output></output></td>${about ? html`<td>${links(name)}</td>` : undefined}</tr>
`,
)}</tbody>
</table>
<h2>Upgrade a running machine</h2>
${copied('upgrade', `talosctl upgrade --nodes NODE --image ${image}`)}
<h2>Install from a machine configuration</h2>
${copied('install', `machine:\n  install:\n    image: ${image}`)}
<h2>Start through the network</h2>
<p>A line for the script of iPXE:</p>
${copied('pxe', `chain --autofree ${origin}/pxe/${schematic.id}/${version}/${platform}`)}
</section>`
}

const copied = (id: string, text: string) =>
  html`<div class="line"><pre id="${id}">${text}</pre><button type="button" data-copy="${id}" hidden>Copy</button></div>`
