/**
 * Runs the long stories of etcd on real clusters, one after another, and writes their figures into bench/README.md.
 *
 *   sudo bun tests/etcd/all.ts [--only recovery] [--minutes 30]
 */
import { parseArgs } from 'node:util'
import { runLongStories } from '../support/long-stories.ts'

const { only, minutes } = parseArgs({ options: { only: { type: 'string' }, minutes: { type: 'string' } } }).values
if (minutes !== undefined && !/^[1-9]\d{0,3}$/.test(minutes)) {
  console.error(`--minutes "${minutes}": give a number from 1 to 9999`)
  process.exit(64)
}
process.exit(await runLongStories({ folder: 'etcd', marker: 'etcd', only, ...(minutes && { env: { ICHOR_MINUTES: minutes } }) }))
