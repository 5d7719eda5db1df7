/** Figures that long stories measure, for the tables in bench/README.md: lines of a file that their runner names. */
import { appendFileSync } from 'node:fs'

/** One measured figure. */
export interface Figure {
  readonly story: string
  readonly what: string
  readonly value: string
}

/** Records a figure when a runner of long stories (long-stories.ts) runs the story. */
export function figure(story: string, what: string, value: string): void {
  const path = process.env.ICHOR_FIGURES
  if (path) appendFileSync(path, `${JSON.stringify({ story, what, value } satisfies Figure)}\n`)
  console.log(`${story}: ${what}: ${value}`)
}
