import { rename, rm } from 'node:fs/promises'
import { Command } from 'commander'
import { codeOf } from '../../../../wire/errno.ts'
import { NodeProgress } from '../../action/progress.ts'
import { ZipWriter } from '../../archive/zip-writer.ts'
import type { Cluster } from '../../cluster.ts'
import { describe, ExitCode, UsageError } from '../../failure.ts'
import { integer } from '../../flags.ts'
import { type Io, remark } from '../../io.ts'
import { table } from '../../output/table.ts'
import { nodeSources, type Source } from '../../support/collect.ts'
import { kubernetesSources } from '../../support/kubernetes.ts'
import { redact } from '../../support/redact.ts'

interface SupportOptions {
  numWorkers: number
  output: string
  verbose?: boolean
}

const examples = `
Examples:
  talosctl support -n 10.5.0.2,10.5.0.3            everything of two nodes, into support.zip
  talosctl support -n 10.5.0.2 -O case-17.zip -w 8
`

/** talosctl support */
export const support = (io: Io, cluster: Cluster) =>
  new Command()
    .description('Collect logs, resources and the state of nodes into a zip file for those who help. Secrets are taken out.')
    .option('-w, --num-workers <count>', 'how much to get from each node at the same time', integer(1, 64), 1)
    .option('-O, --output <file>', 'the zip file (default: support.zip)', '')
    .option('-v, --verbose', 'print each file as it is fetched')
    .addHelpText('after', examples)
    .action((options: SupportOptions) => runSupport(io, cluster, options))

interface Failure {
  node: string
  source: string
  error: string
}

/** Collects from all nodes side by side; what could not be got is in a table at the end and in the bundle. */
export async function runSupport(io: Io, cluster: Cluster, { numWorkers, output, verbose }: SupportOptions): Promise<void> {
  const path = output || 'support.zip'
  const nodes = await cluster.nodesOrEndpoint()
  const zip = await create(`${path}.part`)
  const failures: Failure[] = []
  const progress = new NodeProgress(io, verbose || !io.stderr.isTTY ? 'none' : 'auto')
  let files = 0
  const keep = async (node: string, { name, get }: Source) => {
    if (verbose) io.stderr.write(`${node}: ${name}\n`)
    try {
      const text = redact(await get())
      await zip.add(`${node}/${name}`, text, io.now())
      files++
    } catch (error) {
      if (io.signal.aborted) throw error
      failures.push({
        node,
        source: name,
        error: describe(error)
          .split('\n')
          .map((line) => line.trim())
          .filter(Boolean)
          .join(' '),
      })
    }
  }
  try {
    const collect = async (node: string, list: () => Promise<Source[]>) => {
      const sources = await list()
      let done = 0
      await inParallel(numWorkers, sources, async (source) => {
        await keep(node, source)
        done++
        if (!io.stderr.colors && done < sources.length) return
        progress.update(node, `${done} of ${sources.length} files`)
      })
    }
    await Promise.all([
      ...nodes.map((node) => collect(node, () => nodeSources(cluster, node, io.signal))),
      collect('cluster', async () => kubernetesSources(cluster, nodes)),
    ])
    const summary = failures.length > 0 ? errorTable(failures) : 'everything was got\n'
    await zip.add('summary.txt', `${io.now().toISOString()}\nnodes: ${nodes.join(', ')}\n\n${summary}`, io.now())
    await zip.end()
    await rename(`${path}.part`, path)
  } catch (error) {
    await zip.file.close().catch(() => {})
    await rm(`${path}.part`, { force: true })
    throw error
  }
  if (failures.length > 0) io.stderr.write(errorTable(failures))
  remark(io, `support bundle with ${files} files is in "${path}": read it before you give it away, secrets are taken out by their form\n`)
  if (files === 0) throw new ExitCode(1)
}

async function create(path: string): Promise<ZipWriter> {
  try {
    return await ZipWriter.create(path)
  } catch (error) {
    throw new UsageError(`create "${path}": ${codeOf(error)}`)
  }
}

function errorTable(failures: readonly Failure[]): string {
  const sorted = failures.toSorted((a, b) => (a.node === b.node ? a.source.localeCompare(b.source) : a.node.localeCompare(b.node)))
  return table([['', 'SOURCE', 'ERROR'], ...sorted.map(({ node, source, error }) => [node, source, error])])
}

async function inParallel<T>(workers: number, items: readonly T[], act: (item: T) => Promise<void>): Promise<void> {
  let next = 0
  const work = async () => {
    for (let item = items[next++]; item !== undefined; item = items[next++]) await act(item)
  }
  await Promise.all(Array.from({ length: Math.min(workers, items.length) }, work))
}
