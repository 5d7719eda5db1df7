/** The image that a component's new settings name. It is pulled before the running component is stopped. */
import { pause } from '../../../timing/pause.ts'
import { messageOf } from '../../../wire/error-message.ts'

/** Makes an image available before the component that needs it replaces the running one. */
export type PullImage = (reference: string, signal: AbortSignal) => Promise<void>

/** An image that is pulled, and how often that failed. */
export interface AwaitedImage {
  readonly image: string
  there: boolean
  failures: number
  error: string
}

/** An image that is not there yet. */
export const awaitedImage = (image: string): AwaitedImage => ({ image, there: false, failures: 0, error: '' })

/** Milliseconds between two attempts to pull the image of a new version. */
const pullInterval = 5_000

interface PullContext {
  readonly signal: AbortSignal
  wake(): void
  report(error?: unknown): void
}

/** Pulls an image until it is there. Each failure is counted, so that the trial of the settings can end. */
export async function pullRepeatedly(image: AwaitedImage, pull: PullImage, { signal, wake, report }: PullContext): Promise<void> {
  while (!signal.aborted) {
    try {
      await pull(image.image, signal)
      image.there = true
      wake()
      return
    } catch (error) {
      if (signal.aborted) return
      image.failures++
      image.error = pullError(image.image, error)
      report(error)
      wake()
      await pause(pullInterval, signal)
    }
  }
}

/** The message for an operator about a failed pull. */
export const pullError = (image: string, error: unknown): string => `image "${image}" cannot be pulled: ${messageOf(error)}`
