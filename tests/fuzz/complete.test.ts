/** Every parser of what others wrote is among the targets: called by one, or by a parser that is. Anything else is listed with a reason. */
import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Glob } from 'bun'

const source = join(import.meta.dir, '../../src')
const rooms = ['wire', 'oci', 'pki', 'document', 'kube', 'rpc', 'supervise', 'os', 'programs/apid', 'programs/trustd', 'programs/discovery']

/** Parsers that see nothing of others, or are the runtime's own. */
const exempt: Readonly<Record<string, string>> = {
  'os/block/device.ts readDiskTable': 'opens a device for readTable',
  'os/block/meta/partition.ts readMetaPartition': 'opens a partition for readMeta and readAdv',
  'os/config/generate/secrets.ts parseSecrets': 'the operator’s own file, on the operator’s computer',
  'os/config/parse.ts parseConfig': 'ConfigContainer.parse with a cache',
  'os/config/sources/config-disk.ts readConfigDisk': 'mounts a disk and gives what is on it to ConfigContainer.parse',
  'os/config/trial/marker.ts readTrial': 'a file that init writes itself; tests/programs/init damages it',
  'os/cri/image-table.ts readImageTable': 'a file of the image',
  'os/cri/toml.ts parseToml': 'the runtime’s own parser',
  'os/etcd/repair/kept.ts readKept': 'a file that init writes itself; tests/os/etcd/repair.test.ts damages it',
  'os/files/api/read.ts readMethods': 'methods of the API that read files',
  'os/lifecycle/start/wipe-disks.ts parseWipe': 'a word of the kernel’s command line, which who starts the machine writes',
  'os/network/platform/loose.ts readJsonList': 'called by the platforms behind "answers of platforms"',
  'programs/discovery/discovery.ts parseListen': 'an option of the command line',
}

interface Parser {
  readonly file: string
  readonly name: string
}

const declared = /^export (?:async )?(?:function\*?|const) ((?:parse|read|decode|decompress)[A-Z]\w*)/gm
const texts = new Map(
  rooms
    .flatMap((room) => [...new Glob(`${room}/**/*.ts`).scanSync(source)])
    .map((file) => [file, readFileSync(join(source, file), 'utf8')]),
)
const parsers: Parser[] = [...texts].flatMap(([file, text]) => [...text.matchAll(declared)].map(([, name = '']) => ({ file, name })))

const count = (text: string, name: string) => text.match(new RegExp(`\\b${name}\\b`, 'g'))?.length ?? 0

/** Files whose parsers run in a target: what a target imports, and what those import that the names are found in. */
function reached(): Set<Parser> {
  const targets = readdirSync(import.meta.dir)
    .filter((name) => name.endsWith('targets.ts'))
    .map((name) => readFileSync(join(import.meta.dir, name), 'utf8'))
    .join('\n')
  const found = new Set(parsers.filter(({ name }) => count(targets, name) > 0))
  const imported = [...targets.matchAll(/from '\.\.\/\.\.\/src\/([^']+)'/g)].map(([, file = '']) => file)
  const files = new Set([...imported, ...[...found].map(({ file }) => file)])
  for (let before = -1; before !== found.size; ) {
    before = found.size
    for (const parser of parsers) {
      // In its own file it is named once where it is declared.
      const called = [...files].some((file) => count(texts.get(file) ?? '', parser.name) > (file === parser.file ? 1 : 0))
      if (found.has(parser) || !called) continue
      found.add(parser)
      files.add(parser.file)
    }
  }
  return found
}

test('every parser of what others wrote is fuzzed', () => {
  const found = reached()
  const missing = parsers.filter((parser) => !found.has(parser)).map(({ file, name }) => `${file} ${name}`)
  expect(parsers.length).toBeGreaterThan(100)
  expect(missing.sort()).toEqual(Object.keys(exempt).sort())
})
