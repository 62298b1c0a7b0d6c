-- Every replica that starts from now on stores responses by their schema. One of the release before that runs still goes
-- on storing them whole until it ends; both forms are read for ever.
DELETE FROM response_schema WHERE digest = '';
