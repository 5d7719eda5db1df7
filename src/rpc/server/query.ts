/**
 * Queries of the resource API, by labels and by patterns for ids. Both come from clients and are evaluated on the main thread, those
 * of a watch for every event: their cost is counted in steps, of which each client has a budget for all its calls.
 */
import type { LabelTerm, Selector } from '../../cosi/selector.ts'
import type { IdMatcher, Query } from '../../cosi/store-table.ts'
import { TokenBucket } from '../../timing/token-bucket.ts'
import { PatternError } from '../../wire/re2/parse.ts'
import { longestProgram, Re2 } from '../../wire/re2/re2.ts'
import { cosi as enums } from '../enums.ts'
import type { cosi } from '../messages.ts'
import { RpcError } from '../status.ts'
import type { Context } from './method.ts'

const { Operation } = enums.resource.LabelTerm

/** Steps of one client in a burst, and per second: at most a tenth of a second of processor time. */
const stepBudget = 4_000_000

/** Cost of compiling a pattern, per step of its program. */
const compileSteps = 16

/** Bytes of memory that each step of a compiled pattern takes. */
const stepMemory = 64

/** Cost of one label term; plus one step per value, and one per `charactersPerStep` characters. */
const termSteps = 16
const charactersPerStep = 16

/** Maximum number of label terms of one query. */
const maxTerms = 64

/** The step budget of one client. */
class Steps {
  readonly #bucket = new TokenBucket({ rate: stepBudget, burst: stepBudget })

  /** Throws RpcError when none is left. An overdraft has to be refilled first. */
  require(): void {
    if (this.#bucket.tokens() <= 0)
      throw new RpcError('ResourceExhausted', 'your queries take too long: use fewer repetitions in patterns for ids, or fewer watches')
  }

  spend(steps: number): void {
    this.#bucket.spend(steps)
  }
}

type QueryContext = Pick<Context, 'client' | 'hold'>

/** The budgets of clients that have connections or calls. */
const steps = new WeakMap<object, Steps>()

function stepsOf(client: object): Steps {
  let known = steps.get(client)
  if (!known) {
    known = new Steps()
    steps.set(client, known)
  }
  return known
}

/** The query of a client. Throws RpcError when it is invalid, and when the client has used up its budget. */
export function queryOf(
  options: Pick<cosi.resource.ListOptions, 'labelQuery' | 'idQuery'> | undefined,
  context: QueryContext,
): Pick<Query, 'labels' | 'id'> {
  const labels = labelsOf(options?.labelQuery ?? [])
  const pattern = options?.idQuery?.regexp
  if (labels.length === 0 && !pattern) return {}
  const budget = stepsOf(context.client)
  return {
    ...(labels.length > 0 && { labels }),
    id: matcherOf(budget, stepsOfLabels(labels), pattern ? compiled(pattern, budget, context) : undefined),
  }
}

function labelsOf(queries: readonly cosi.resource.LabelQuery[]): Selector[] {
  const count = queries.reduce((sum, { terms }) => sum + Math.max(1, terms.length), 0)
  if (count > maxTerms)
    throw new RpcError('InvalidArgument', `${count} conditions on labels are too many for one query: at most ${maxTerms}`)
  return queries.map(({ terms }) => terms.map(labelTerm))
}

const operations: Record<number, LabelTerm['op']> = {
  [Operation.EXISTS]: 'exists',
  [Operation.EQUAL]: 'equal',
  [Operation.NOT_EXISTS]: 'exists',
  [Operation.IN]: 'in',
  [Operation.LT]: 'lt',
  [Operation.LTE]: 'lte',
  [Operation.LT_NUMERIC]: 'lt-numeric',
  [Operation.LTE_NUMERIC]: 'lte-numeric',
}

function labelTerm({ key, op, value, invert }: cosi.resource.LabelTerm): LabelTerm {
  const operation = operations[op]
  if (!operation) throw new RpcError('Unimplemented', `unknown label operation ${op}`)
  return { key, op: operation, values: value, invert: op === Operation.NOT_EXISTS ? !invert : invert }
}

/** The most that comparing the labels of one resource costs. */
function stepsOfLabels(labels: readonly Selector[]): number {
  let sum = 0
  for (const { values = [] } of labels.flat()) {
    sum += termSteps
    for (const { length } of values) sum += 1 + Math.floor(length / charactersPerStep)
  }
  return sum
}

/** Spends what comparing one resource costs; the store looks at the id before the labels. */
function matcherOf(budget: Steps, labelSteps: number, pattern: Re2 | undefined): IdMatcher {
  return {
    test(id) {
      budget.require()
      const before = pattern?.steps ?? 0
      const matches = pattern?.test(id) ?? true
      budget.spend(labelSteps + (pattern?.steps ?? 0) - before)
      return matches
    },
  }
}

function compiled(pattern: string, budget: Steps, context: QueryContext): Re2 {
  budget.require()
  let size = longestProgram
  try {
    const program = new Re2(pattern)
    size = program.size
    context.hold(size * stepMemory)
    return program
  } catch (error) {
    if (error instanceof PatternError) throw new RpcError('InvalidArgument', `pattern for ids: ${error.message}`)
    throw error
  } finally {
    budget.spend(size * compileSteps)
  }
}
