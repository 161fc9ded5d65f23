/** The user as whom the system lets this process open files. */
export function ownUser(): number {
  return process.geteuid?.() ?? 0; // every system that we run on has users
}
