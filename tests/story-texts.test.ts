/**
 * Texts of our programs that stories look for. Stories take long and run rarely, so a message that is reworded is found here:
 * each three words in a row of a text must still be in a source.
 */
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { Glob } from 'bun'

const root = join(import.meta.dir, '..')
const read = async (patterns: readonly string[]): Promise<[string, string][]> => {
  const files = patterns.flatMap((pattern) => [...new Glob(pattern).scanSync(root)]).sort()
  return Promise.all(files.map(async (file) => [file, await Bun.file(join(root, file)).text()] as [string, string]))
}

/** Texts of other programs, and those that are put together of several, by their first three words. */
const elsewhere: Readonly<Record<string, string>> = {
  'Booting Linux Kernel': 'the kernel',
  'El Torito boot': 'xorriso',
  'GiB are needed': 'a size and its unit',
  'No errors were': 'unsquashfs',
  'No problems found': 'sgdisk',
  'Nexthop has invalid': 'the kernel',
  'Signature verification OK': 'sbverify',
  'The disruption budget': 'the API server',
  'Unknown device type': 'the kernel',
  'Verify return code': 'openssl',
  'certificate signed by': 'containerd',
  'control plane and': 'numbers of nodes',
  'database space exceeded': 'etcd',
  'failed to verify': "the field's client",
  'holds partitions theirs': 'names of partitions',
  'is fixed off': 'a feature and its state',
  'it goes back': 'a sentence with how it goes back',
  'known are uuid': 'names of variables',
  'limit of containers': 'the kubelet',
  'not defined in': 'the kernel',
  'older than client': "the field's client",
  'protocol version not': "the field's client",
  'the machine is': 'a sentence with what it is',
  'unknown certificate authority': "the field's client",
  'unknown tls version': 'the kubelet',
  'unless the node': 'a sentence with when it is reached',
  'waiting for all': 'a condition',
  'waiting for coredns': 'a condition',
  'waiting for etcd': 'a condition',
  'written by the': "the story's own file",
}

/** A literal that is compared with what a program wrote: a string, a template or a regular expression. */
const literal = /'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`|\/(?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\//.source
const comparison = new RegExp(
  `(?:toContain|stringContaining|toMatch|stringMatching|toStartWith|toEndWith|toThrow|includes|startsWith|endsWith)\\(\\s*(${literal})`,
  'g',
)

/** The plain words of a literal: its parts between what varies, each of three words or more. */
function phrasesOf(text: string): string[] {
  const inner = text.slice(1, -1)
  const plain = text.startsWith('/')
    ? inner.replaceAll(/\\[dDwWsSbBntr]|\[(?:[^\]\\]|\\.)*\]|[.*+?^$(){}|]/g, '\n').replaceAll(/\\(.)/g, '$1')
    : inner.replaceAll(/\$\{[^}]*\}|\\[nt]/g, '\n').replaceAll(/\\(.)/g, '$1')
  // A word beside anything but a space or punctuation is a part of one.
  return plain.match(/(?<![^\s"“(:;,])[a-z][a-z'’-]*(?: [a-z][a-z'’-]*){2,}(?![^\s"”):;,.])/gi) ?? []
}

test('phrases are taken from literals', () => {
  expect(phrasesOf("'reverted in 60s unless the node is reached'")).toEqual(['unless the node is reached'])
  expect(phrasesOf('/it goes back|configuration \\d+ was reverted by itself/')).toEqual(['it goes back', 'was reverted by itself'])
  expect(phrasesOf(`\`the volume ${'$'}{name} is in use\``)).toEqual(['is in use'])
  expect(phrasesOf("'apid serves port=50000'")).toEqual([])
})

test('every text that a story looks for is in a source', async () => {
  const texts = (await read(['src/**/*.{ts,txt}', 'rootfs/**/*.{c,h,ts,sh}', 'tests/interop/*.go'])).map(([, text]) => text)
  // Bytes are searched several times faster than characters.
  const sources = Buffer.from(texts.join('\n').replaceAll(/\\(['"`])/g, '$1'))
  const missing: string[] = []
  const exceptions = new Set<string>()
  let phrases = 0
  for (const [file, text] of await read(['tests/**/*.story.ts']))
    for (const [, found = ''] of text.matchAll(comparison))
      for (const phrase of phrasesOf(found)) {
        phrases++
        const words = phrase.split(' ')
        const windows = words.slice(2).map((_, index) => words.slice(index, index + 3).join(' '))
        if (windows.every((window) => sources.includes(window))) continue
        if (Object.hasOwn(elsewhere, windows[0]!)) exceptions.add(windows[0]!)
        else missing.push(`${file}: ${phrase}`)
      }
  expect(missing).toEqual([])
  expect([...exceptions].sort()).toEqual(Object.keys(elsewhere).sort())
  expect(phrases).toBeGreaterThan(60)
})
