import { ichor } from '../../../rpc/enums.ts'
import type { ichor as messages } from '../../../rpc/messages.ts'
import type { Cluster } from '../cluster.ts'
import { ExitCode } from '../failure.ts'
import type { Io } from '../io.ts'
import { type OutputFlags, structured } from '../output/output.ts'
import type { Schema } from '../output/schema.ts'
import { table } from '../output/table.ts'

const { NOTE, REFUSED } = ichor.v1.PlanItem.Verdict

/** A line of a plan; the verdict is ok, note or refused. */
export const planSchema: Schema = { node: 'string', verdict: 'string', subject: 'string', found: 'string' }

/** Milliseconds that a node may take to get the image and judge it. */
const planTimeout = 30 * 60_000

/** Shows what an installation or upgrade would do on each named node; ends with exit code 1 where one would be refused. */
export async function showPlan(
  io: Io,
  cluster: Cluster,
  { output }: OutputFlags,
  request: (node: string | undefined) => Promise<Partial<messages.v1.PlanRequest>>,
): Promise<void> {
  const empty = { imageName: '', disk: '', wipe: false, install: false, force: false }
  const { items, failure } = await cluster.collect(async function* (node, name, signal) {
    const planned = { ...empty, ...(await request(node)) }
    for await (const { progress, items } of cluster.stream('ichor.v1.ReleaseService/Plan', planned, { node, signal })) {
      if (progress) io.stderr.write(`${name}: ${progress}\n`)
      for (const { verdict, subject, text } of items) yield { node: name, verdict: nameOf(verdict), subject, found: text }
    }
  }, planTimeout)
  if (!structured(io, output, items)) {
    const rows = items.map(({ node, verdict, subject, found }) => [node, verdict, subject, found])
    io.stdout.write(table([['NODE', 'VERDICT', 'SUBJECT', 'FOUND'], ...rows]))
  }
  if (failure) throw failure
  if (items.some(({ verdict }) => verdict === 'refused')) throw new ExitCode(1)
}

const nameOf = (verdict: number): string => (verdict === REFUSED ? 'refused' : verdict === NOTE ? 'note' : 'ok')
