import { stat } from 'node:fs/promises'
import { Command } from 'commander'
import { ByteProgress, writeBytes } from '../../action/byte-progress.ts'
import type { Cluster } from '../../cluster.ts'
import { LiveArgument } from '../../completion/live-argument.ts'
import { paths } from '../../completion/suggestions.ts'
import { ExitCode, NodeErrors, UsageError } from '../../failure.ts'
import { type Io, remark } from '../../io.ts'
import { humanSize } from '../../output/units.ts'

/** talosctl copy */
export const copy = (io: Io, cluster: Cluster) =>
  new Command()
    .description('Copy a file or folder of a node into a local folder, or as .tar.gz to standard output.')
    .addArgument(new LiveArgument('<src-path>', 'what to copy', paths))
    .argument('<local-path>', 'folder to copy it into; "-" is standard output')
    .action((source: string, target: string) => runCopy(io, cluster, source, target))

/** Streams the archive to standard output or lays it out. */
export async function runCopy(io: Io, cluster: Cluster, source: string, target: string): Promise<void> {
  await cluster.single('copy')
  const failures: Failures = []
  const chunks = received(cluster, source, failures)
  if (target === '-') return writeBytes(io, chunks, 'copying').then(() => failIf(failures))
  const present = await stat(target).catch(() => undefined)
  if (present && !present.isDirectory()) throw new UsageError(`"${target}" is not a folder: name one, or "-" for standard output`)
  const { extract } = await import('../../archive/extract.ts')
  const { gunzip } = await import('../../archive/decompress.ts')
  const progress = new ByteProgress(io, 'copying')
  const { files, bytes, skipped } = await extract(
    gunzip({ [Symbol.asyncIterator]: () => ({ next: () => chunks.next() }) }),
    target,
    (done) => progress.at(done),
  ).finally(() => progress.end())
  // Read errors follow the archive.
  for (let rest = await chunks.next(); !rest.done; ) rest = await chunks.next()
  for (const name of skipped) io.stderr.write(`WARNING: skipped "${name}": it is neither a file, a folder nor a link\n`)
  remark(io, `copied ${files} file${files === 1 ? '' : 's'}, ${humanSize(bytes)}, into "${target}"\n`)
  failIf(failures)
}

type Failures = { node: string; error: Error }[]

function failIf(failures: Failures): void {
  if (failures.length > 0) throw new NodeErrors(failures)
}

async function* received(cluster: Cluster, rootPath: string, failures: Failures): AsyncGenerator<Uint8Array, void> {
  const failed = (node: string, error: Error) => failures.push({ node, error })
  try {
    for await (const { bytes } of cluster.stream('machine.MachineService/Copy', { rootPath }, { failed })) yield bytes
  } catch (error) {
    // The failures are reported in full; a summary adds nothing.
    if (!(error instanceof ExitCode)) throw error
  }
}
