import { afterEach, expect, test } from 'bun:test'
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { JournalError, openJournal } from '../../../src/programs/node-supervisor/journal.ts'

const directories: string[] = []
const fresh = () => {
  const directory = mkdtempSync(join(tmpdir(), 'ichor-journal-'))
  directories.push(directory)
  return openJournal(directory)
}
afterEach(() => {
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true })
})

test('what was written is read back in order, each intent once', () => {
  const journal = fresh()
  journal.write({ kind: 'link', name: 'ichor1' })
  journal.write({ kind: 'mount', target: '/a', node: 'n1' })
  journal.write({ kind: 'link', name: 'ichor1' })
  expect(journal.entries()).toEqual([
    { kind: 'link', name: 'ichor1' },
    { kind: 'mount', target: '/a', node: 'n1' },
  ])
})

test('a line cut short by a crash hides neither what came before nor what comes after', () => {
  const journal = fresh()
  journal.write({ kind: 'link', name: 'one' })
  const whole = readFileSync(journal.file, 'utf8')
  for (let cut = 1; cut < 20; cut++) {
    rmSync(journal.file)
    appendFileSync(journal.file, `${whole}\n{"kind":"link","name":"torn"}`.slice(0, whole.length + cut))
    journal.write({ kind: 'link', name: 'two' })
    expect(journal.entries().map((entry) => (entry.kind === 'link' ? entry.name : ''))).toEqual(['one', 'two'])
  }
})

test('a node that is gone is forgotten, the others are not', () => {
  const journal = fresh()
  journal.write({ kind: 'link', name: 'bridge' })
  journal.write({ kind: 'link', name: 'a', node: 'n1' })
  journal.write({ kind: 'link', name: 'b', node: 'n2' })
  journal.forget('n1')
  expect(journal.entries().map((entry) => entry.node)).toEqual([undefined, 'n2'])
})

test('what several processes write and forget at once is all there', async () => {
  const journal = fresh()
  const others = ['n1', 'n2', 'n3', 'n4']
  const count = 100
  const writer = (node: string) => `
    import { Journal } from ${JSON.stringify(Bun.resolveSync('../../../src/programs/node-supervisor/journal.ts', import.meta.dir))}
    const journal = new Journal(${JSON.stringify(journal.file)})
    for (let i = 0; i < ${count}; i++) {
      journal.write({ kind: 'cgroup', path: '/' + i, node: '${node}' })
      journal.write({ kind: 'cgroup', path: '/' + i, node: '${node}-gone' })
      journal.forget('${node}-gone')
    }`
  const exits = others.map((node) => Bun.spawn([process.execPath, '-e', writer(node)], { stderr: 'inherit' }).exited)
  expect(await Promise.all(exits)).toEqual(others.map(() => 0))
  const left = journal.entries().map((entry) => (entry.kind === 'cgroup' ? `${entry.node}${entry.path}` : ''))
  expect(left.sort()).toEqual(others.flatMap((node) => Array.from({ length: count }, (_, i) => `${node}/${i}`)).sort())
}, 30_000)

test('an entry of an unknown kind is refused, for undoing half of it would be worse', () => {
  const journal = fresh()
  appendFileSync(journal.file, '{"kind":"raid","name":"md0"}\n')
  expect(() => journal.entries()).toThrow(JournalError)
})

test('names that would reach outside are refused', () => {
  const journal = fresh()
  appendFileSync(journal.file, '{"kind":"link","name":"../../etc"}\n')
  expect(() => journal.entries()).toThrow(JournalError)
})

test('no journal means nothing was made', () => {
  expect(fresh().entries()).toEqual([])
})
