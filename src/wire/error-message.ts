/** The message of what was thrown, which is not always an Error. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
