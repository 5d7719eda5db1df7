/** Which control group is killed. */
import { join } from 'node:path'
import type { RankingValues } from '../documents/oom-expression.ts'
import { type ClassGroup, candidates, type GroupFiles, memoryOf } from './groups.ts'

/** A group with its score. */
export interface Ranked extends ClassGroup {
  readonly score: number
}

/** The group to kill: of the least important class when classes are strict, with the highest score; undefined when none has one. */
export function victimOf(
  files: GroupFiles,
  root: string,
  rank: (values: RankingValues) => number,
  strictClasses: boolean,
): Ranked | undefined {
  const ranked = candidates(files, root)
    .map(
      (group): Ranked => ({
        ...group,
        score: rank({ ...memoryOf(files, join(root, group.path)), path: join(root, group.path), class: group.class }),
      }),
    )
    .filter(({ score }) => score > 0)
  const lowest = Math.min(...ranked.map((group) => group.class))
  return ranked
    .filter((group) => !strictClasses || group.class === lowest)
    .reduce<Ranked | undefined>((best, group) => (best && best.score >= group.score ? best : group), undefined)
}
