/**
 * Runs the long stories of Kubernetes upgrades on real clusters, one after another, and writes their figures into bench/README.md.
 * The first run compiles an older Kubernetes, which takes many minutes.
 *
 *   sudo bun tests/upgrade/all.ts [--only kubernetes]
 */
import { parseArgs } from 'node:util'
import { runLongStories } from '../support/long-stories.ts'

const { only } = parseArgs({ options: { only: { type: 'string' } } }).values
process.exit(await runLongStories({ folder: 'upgrade', marker: 'kubernetes upgrades', only }))
