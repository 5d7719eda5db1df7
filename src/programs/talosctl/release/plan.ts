import { ichor } from '../../../rpc/enums.ts'
import type { ichor as messages } from '../../../rpc/messages.ts'
import type { Cluster } from '../cluster.ts'
import { ExitCode } from '../failure.ts'
import type { Io } from '../io.ts'
import { table } from '../output/table.ts'

const { NOTE, REFUSED } = ichor.v1.PlanItem.Verdict

/** Shows what an installation or upgrade would do on each named node; ends with exit code 1 where one would be refused. */
export async function showPlan(
  io: Io,
  cluster: Cluster,
  request: (node: string | undefined) => Promise<Partial<messages.v1.PlanRequest>>,
): Promise<void> {
  const empty = { imageName: '', disk: '', wipe: false, install: false, force: false }
  const rows: string[][] = [['NODE', 'VERDICT', 'SUBJECT', 'FOUND']]
  const all = cluster.each(async function* (node, name) {
    for await (const { progress, items } of cluster.stream(
      'ichor.v1.ReleaseService/Plan',
      { ...empty, ...(await request(node)) },
      { node },
    )) {
      if (progress) io.stderr.write(`${name}: ${progress}\n`)
      for (const item of items) yield { name, item }
    }
  })
  let refused = false
  for await (const { name, item } of all) {
    rows.push([name, item.verdict === REFUSED ? 'refused' : item.verdict === NOTE ? 'note' : 'ok', item.subject, item.text])
    refused ||= item.verdict === REFUSED
  }
  io.stdout.write(table(rows))
  if (refused) throw new ExitCode(1)
}
