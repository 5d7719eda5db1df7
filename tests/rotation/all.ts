/**
 * Runs the long stories of rotations on real clusters, one after another, and writes their figures into bench/README.md.
 *
 *   sudo bun tests/rotation/all.ts [--only keys]
 */
import { parseArgs } from 'node:util'
import { runLongStories } from '../support/long-stories.ts'

const { only } = parseArgs({ options: { only: { type: 'string' } } }).values
process.exit(await runLongStories({ folder: 'rotation', marker: 'rotation', only }))
